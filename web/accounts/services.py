"""Accounts and tokens: every write, with its audit row, in one transaction."""

import secrets
from datetime import datetime, timedelta

from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.countries import countries
from web.accounts.credentials import TOKEN_PREFIX, token_hash
from web.accounts.devices import (
    device_bind,
    device_key_replace,
    device_rename,
    device_revoke,
    device_seen,
)
from web.accounts.grants import grants_end
from web.accounts.models import ApiToken, Device, User
from web.accounts.signals import access_changed, access_changing, profile_closed
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.events import access_changed_publish

__all__ = [
    "device_bind",
    "device_key_replace",
    "device_rename",
    "device_revoke",
    "device_seen",
    "service_user_get",
    "token_issue",
    "token_revoke",
    "user_ban",
    "user_country_set",
    "user_profile_public_set",
    "user_register",
    "user_unban",
    "users_unban_expired",
]

_BAN_FIELDS = ("banned_at", "banned_reason", "banned_until")
_SHOWN = len(TOKEN_PREFIX) + 6
"""Characters of a token that are kept readable, to tell tokens apart in a list."""


@transaction.atomic
def user_register(*, username: str, password: str, email: str = "", is_staff: bool = False) -> User:
    """Make an account without the sign-up page (organisers, demo)."""
    user = User.objects.create_user(username, email, password, is_staff=is_staff)
    audit_record(user, "user.registered", username, {"is_staff": is_staff})
    return user


@transaction.atomic
def service_user_get(name: str) -> User:
    """Return the account that owns managed workers; it can never log in and is not ranked."""
    user, is_new = User.objects.get_or_create(username=name, defaults={"is_service": True})
    if not user.is_service:
        raise AppError(ErrorCode.FORBIDDEN, f"The name {name} belongs to a person.")
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=("password",))
        audit_record(None, "user.registered", name, {"is_service": True})
    return user


@transaction.atomic
def user_ban(actor: User, user: User, reason: str, *, expires_at: datetime | None = None) -> None:
    """Suspend an account, for good or until the site lifts it at ``expires_at``.

    Its sessions, terminal logins and tokens end at once, and so do its streams of private runs.
    It gets no fresh pass, and its peers go on the revocation list of every run they were in.
    """
    _ban_right_require(actor, user)
    access_changing.send(User, user=user)
    now = timezone.now()
    if expires_at is not None and expires_at <= now:
        raise AppError(ErrorCode.BODY_INVALID, "expires_at: this time is over already.")
    user.banned_at = user.banned_at or now
    user.banned_reason, user.banned_until = reason[:300], expires_at
    user.save(update_fields=_BAN_FIELDS)
    _sessions_end(user)
    grants_end(user.pk, now)
    ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=now)
    until = {"until": expires_at.isoformat()} if expires_at else {}
    access_changed.send(User, user=user)
    audit_record(actor, "user.banned", user.username, {"reason": reason, **until})
    transaction.on_commit(access_changed_publish)


@transaction.atomic
def user_unban(actor: User | None, user: User, *, reason: str = "") -> None:
    """Lift a suspension. Logins and tokens that it ended stay ended. None: the site itself."""
    if actor is not None:
        _ban_right_require(actor, user)
    access_changing.send(User, user=user)
    before = {"reason": user.banned_reason}
    user.banned_at, user.banned_reason, user.banned_until = None, "", None
    user.save(update_fields=_BAN_FIELDS)
    access_changed.send(User, user=user)
    why = {"reason": reason[:300]} if reason else {}
    audit_record(actor, "user.unbanned", user.username, {"before": before, **why})
    transaction.on_commit(access_changed_publish)


def users_unban_expired(now: datetime) -> int:
    """Lift the suspensions whose time is over; return how many."""
    over = list(User.objects.filter(banned_at__isnull=False, banned_until__lte=now))
    for user in over:
        user_unban(None, user, reason="its time was over")
    return len(over)


@transaction.atomic
def user_profile_public_set(user: User, *, is_public: bool) -> None:
    """Open or close the account's public profile; closed, it is so for what was shown before."""
    is_closing = user.is_profile_public and not is_public
    if is_closing:
        access_changing.send(User, user=user)
    user.is_profile_public = is_public
    user.save(update_fields=("is_profile_public",))
    if is_closing:
        profile_closed.send(User, user=user)
    audit_record(user, "user.profile.changed", user.username, {"is_public": is_public})


@transaction.atomic
def user_country_set(user: User, code: str) -> None:
    """Name the account's country, or none with an empty code.

    Raises:
        AppError: BODY_INVALID (no such country).
    """
    if code and code not in countries():
        raise AppError(ErrorCode.BODY_INVALID, "country: choose one of the list, or none.")
    if user.country == code:
        return
    user.country = code
    user.save(update_fields=("country",))
    audit_record(user, "user.country.changed", user.username, {"is_named": bool(code)})


@transaction.atomic
def token_issue(
    user: User,
    scope: str,
    *,
    name: str = "",
    run_slug: str = "",
    device: Device | None = None,
    lifetime: timedelta | None = None,
) -> tuple[ApiToken, str]:
    """Return a new API token and its value, which is not kept and cannot be shown again."""
    if device is not None and device.user_id != user.pk:
        raise AppError(ErrorCode.FORBIDDEN, "This device belongs to another account.")
    value = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        scope=ApiToken.Scope(scope),
        name=name[:80],
        run_slug=run_slug,
        device=device,
        hash=token_hash(value),
        prefix=value[:_SHOWN],
        expires_at=timezone.now() + lifetime if lifetime else None,
    )
    audit_record(user, "token.issued", token.prefix, {"scope": token.scope, "run": run_slug})
    return token, value


@transaction.atomic
def token_revoke(actor: User, token: ApiToken) -> None:
    """End a token; ending it again changes nothing."""
    if actor.pk != token.user_id and not actor.is_staff:
        raise AppError(ErrorCode.FORBIDDEN, "This token belongs to another account.")
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit_record(actor, "token.revoked", token.prefix)


def _ban_right_require(actor: User, user: User) -> None:
    has_right = actor.is_staff or actor.is_superuser
    may = has_right and not actor.is_banned and actor.pk != user.pk
    if not may or (user.is_superuser and not actor.is_superuser):
        raise AppError(ErrorCode.FORBIDDEN, "You may not suspend or restore this account.")


def _sessions_end(user: User) -> None:
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
