"""Who a program is: bearer tokens of terminal logins (allauth) and our own API tokens."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.idp.oidc.adapter import get_adapter as get_oidc_adapter
from allauth.idp.oidc.models import Token
from django.utils.crypto import constant_time_compare

from training.protocol.errors import ErrorCode
from training.protocol.names import OAUTH_CLIENT_ID
from web.accounts.models import ApiToken, Device, User
from web.core.errors import AppError

TOKEN_PREFIX = "by_"  # noqa: S105
USED_EVERY = timedelta(minutes=1)
"""``last_used_at`` is written no more often than this."""

SCOPES: dict[str, frozenset[str]] = {
    ApiToken.Scope.READ: frozenset({"read"}),
    ApiToken.Scope.DEVICE: frozenset({"read", "device"}),
    ApiToken.Scope.COORDINATOR: frozenset({"read", "device", "coordinator"}),
}
SESSION_SCOPES = frozenset({"read", "session"})


@dataclass(frozen=True)
class Credential:
    """A checked token or session. ``device`` is None until the first join binds one."""

    user: User
    scopes: frozenset[str]
    device: Device | None = None
    run_slug: str = ""
    """Only this run, when given."""
    token: ApiToken | None = None
    grant_id: str = ""


def token_hash(value: str) -> str:
    """Return what is stored of an API token."""
    return hashlib.sha256(value.encode()).hexdigest()


def credential_of_token(value: str, now: datetime) -> Credential:
    """Return what a bearer token stands for.

    Raises:
        AppError: TOKEN_INVALID, TOKEN_EXPIRED, BANNED or DEVICE_REVOKED.
    """
    is_ours = value.startswith(TOKEN_PREFIX)
    credential, ended = (_of_api_token if is_ours else _of_login)(value, now)
    # A ban and a revocation also end tokens; whoever holds one should hear the true reason.
    if credential.user.is_banned or not credential.user.is_active:
        raise AppError(ErrorCode.BANNED, credential.user.ban_text)
    if credential.device and credential.device.is_revoked:
        raise AppError(ErrorCode.DEVICE_REVOKED)
    if ended:
        raise ended
    return credential


def _of_api_token(value: str, now: datetime) -> tuple[Credential, AppError | None]:
    hashed = token_hash(value)
    token = ApiToken.objects.select_related("user", "device").filter(hash=hashed).first()
    if token is None or not constant_time_compare(token.hash, hashed):
        raise AppError(ErrorCode.TOKEN_INVALID)
    ended = None
    if token.revoked_at:
        ended = AppError(ErrorCode.TOKEN_INVALID, "This token was revoked.")
    elif token.expires_at and token.expires_at <= now:
        ended = AppError(ErrorCode.TOKEN_EXPIRED)
    elif token.last_used_at is None or token.last_used_at <= now - USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    credential = Credential(
        user=token.user,
        scopes=SCOPES[token.scope],
        device=token.device,
        run_slug=token.run_slug,
        token=token,
    )
    return credential, ended


def _of_login(value: str, now: datetime) -> tuple[Credential, AppError | None]:
    hashed = get_oidc_adapter().hash_token(value)
    tokens = Token.objects.select_related("user").filter(client_id=OAUTH_CLIENT_ID, hash=hashed)
    token = tokens.filter(type=Token.Type.ACCESS_TOKEN).first()
    if token is None or token.user is None:
        raise AppError(ErrorCode.TOKEN_INVALID)
    is_over = token.expires_at and token.expires_at <= now
    grant_id = token.get_grant_id() or ""
    devices = Device.objects.filter(grant_id=grant_id, user=token.user) if grant_id else None
    credential = Credential(
        user=token.user,
        scopes=SCOPES[ApiToken.Scope.DEVICE],
        device=devices.first() if devices is not None else None,
        grant_id=grant_id,
    )
    return credential, AppError(ErrorCode.TOKEN_EXPIRED) if is_over else None
