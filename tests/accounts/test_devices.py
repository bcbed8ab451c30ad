"""Machines are linked by their key, renamed and revoked."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from joserfc.jwk import ECKey, OKPKey

from tests.factories import device_make, token_make, user_make
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate, public_jwk
from web.accounts.credentials import Credential, credential_of_token
from web.accounts.models import Device, User
from web.accounts.selectors import device_visible, devices_for
from web.accounts.services import device_bind, device_rename, device_revoke, device_seen
from web.core.errors import AppError
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db


def bind(user: User, credential: Credential, jwk: dict[str, Any], **fields: Any) -> Device:
    options = {"name": "laptop", "hardware": {}, "trainer_version": "0.1.0"} | fields
    return device_bind(user, jwk=jwk, credential=credential, now=timezone.now(), **options)


def credential_make(user: User) -> Credential:
    return credential_of_token(token_make(user), timezone.now())


def audit_codes() -> list[str]:
    return [entry.code for entry in AuditEntry.objects.order_by("id")]


def test_the_first_join_links_the_machine_and_later_ones_find_it(bob: User) -> None:
    jwk = public_jwk(key_generate())
    value = token_make(bob)
    first = bind(bob, credential_of_token(value, timezone.now()), jwk)
    again = credential_of_token(value, timezone.now())
    assert again.device == first
    second = bind(bob, again, jwk, name="other", trainer_version="0.2.0")
    assert second == first
    first.refresh_from_db()
    assert (first.name, first.trainer_version, first.kid) == ("laptop", "0.2.0", jwk["kid"])
    assert audit_codes() == ["token.issued", "device.linked"]


def test_the_private_half_of_a_key_is_never_kept(bob: User) -> None:
    key = key_generate()
    device = bind(bob, credential_make(bob), key.as_dict(private=True))
    assert "d" not in Device.objects.get(pk=device.pk).jwk


@pytest.mark.parametrize(
    "jwk", [{}, {"kty": "OKP"}, ECKey.generate_key("P-256").as_dict(), {"a": 1}]
)
def test_another_kind_of_key_is_refused(bob: User, jwk: dict[str, Any]) -> None:
    with pytest.raises(AppError) as error:
        bind(bob, credential_make(bob), jwk)
    assert error.value.code == ErrorCode.BODY_INVALID


def test_a_bound_login_refuses_another_key(bob: User) -> None:
    device, _ = device_make(bob)
    credential = Credential(user=bob, scopes=frozenset({"device"}), device=device)
    with pytest.raises(AppError) as error:
        bind(bob, credential, public_jwk(key_generate()))
    assert error.value.code == ErrorCode.DEVICE_KEY_MISMATCH


def test_two_people_may_use_the_same_machine(bob: User, charlie: User) -> None:
    jwk = public_jwk(key_generate())
    assert bind(bob, credential_make(bob), jwk) != bind(charlie, credential_make(charlie), jwk)


def test_a_revoked_machine_comes_back_only_with_a_token_made_later(bob: User) -> None:
    device, key = device_make(bob)
    old = credential_make(bob)
    device_revoke(bob, device)
    with pytest.raises(AppError) as error:
        bind(bob, old, public_jwk(key))
    assert error.value.code == ErrorCode.DEVICE_REVOKED
    assert bind(bob, credential_make(bob), public_jwk(key)) == device
    device.refresh_from_db()
    assert not device.is_revoked


def test_revoking_ends_the_tokens_of_the_machine_and_no_others(bob: User) -> None:
    device, _ = device_make(bob)
    value, other = token_make(bob, device=device), token_make(bob)
    device_revoke(bob, device)
    device_revoke(bob, device)
    assert audit_codes().count("device.revoked") == 1
    with pytest.raises(AppError) as error:
        credential_of_token(value, timezone.now())
    assert error.value.code == ErrorCode.DEVICE_REVOKED
    assert credential_of_token(other, timezone.now()).device is None


@pytest.mark.parametrize(
    ("given", "kept"), [("  my \n laptop ", "my laptop"), ("", "machine"), ("x" * 200, "x" * 80)]
)
def test_names_are_tidied(bob: User, given: str, kept: str) -> None:
    device, _ = device_make(bob)
    device_rename(device, given)
    device.refresh_from_db()
    assert device.name == kept
    assert audit_codes() == ["device.renamed"]


def test_being_seen_is_written_now_and_then_only(bob: User) -> None:
    device, _ = device_make(bob)
    seen = device.last_seen_at
    assert seen
    device_seen(device, seen + timedelta(seconds=1))
    assert device.last_seen_at == seen
    device_seen(device, seen + timedelta(seconds=20))
    device.refresh_from_db()
    assert device.last_seen_at == seen + timedelta(seconds=20)


def test_everybody_sees_their_own_machines_only(alice: User, bob: User, charlie: User) -> None:
    device, key = device_make(bob)
    assert isinstance(key, OKPKey)
    assert device_visible(bob, device.public_id) == device
    assert list(devices_for(charlie)) == []
    for stranger in (alice, charlie):
        with pytest.raises(AppError) as error:
            device_visible(stranger, device.public_id)
        assert error.value.code == ErrorCode.NOT_FOUND
    root = user_make("rooty", is_superuser=True)
    assert device_visible(root, device.public_id) == device
