"""Rows for tests; plain functions."""

from typing import Any

from django.utils import timezone
from joserfc.jwk import OKPKey

from training.protocol.keys import key_generate, public_jwk
from web.accounts.models import Device, User
from web.accounts.services import token_issue
from web.workers.models import WorkerNode

PASSWORD = "correct horse battery"


def user_make(username: str = "bob", **fields: Any) -> User:
    """Return an account that can log in with PASSWORD."""
    return User.objects.create_user(username, f"{username}@example.org", PASSWORD, **fields)


def device_make(user: User, name: str = "laptop", **fields: Any) -> tuple[Device, OKPKey]:
    """Return a linked machine and its private key."""
    key = key_generate()
    jwk = public_jwk(key)
    device = Device.objects.create(
        user=user, name=name, kid=jwk["kid"], jwk=jwk, last_seen_at=timezone.now(), **fields
    )
    return device, key


def token_make(user: User, scope: str = "device", **options: Any) -> str:
    """Return the value of a new API token."""
    return token_issue(user, scope, **options)[1]


def bearer(token: str) -> dict[str, str]:
    """Return headers for Django's test client: ``client.get(url, headers=bearer(token))``."""
    return {"Authorization": f"Bearer {token}"}


def node_make(name: str, **fields: object) -> WorkerNode:
    """A node that was seen just now."""
    now = timezone.now()
    about = {"installation": f"of {name}", "host": f"{name}.example", "started_at": now}
    return WorkerNode.objects.create(**{"name": name, "seen_at": now} | about | fields)
