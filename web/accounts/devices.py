"""Machines of an account: linked at the first join, bound to the login that they use."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.keys import key_load, public_jwk
from web.accounts.credentials import Credential
from web.accounts.grants import grant_end
from web.accounts.models import ApiToken, Device, RetiredDeviceKey, User
from web.accounts.signals import access_changed, access_changing
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.events import access_changed_publish

REKEY_WITHIN = timedelta(days=1)
"""A device whose key was given up takes a new one for so long; later it is a new device."""
SEEN_EVERY = timedelta(seconds=15)
"""``last_seen_at`` is written no more often than this."""


@transaction.atomic
def device_bind(
    user: User,
    *,
    jwk: Mapping[str, Any],
    name: str,
    hardware: Mapping[str, Any],
    trainer_version: str,
    credential: Credential,
    now: datetime,
) -> Device:
    """Return the account's device with this key, made if new, and bind the login to it.

    A revoked device may come back with a login that was made after its revocation.

    Raises:
        AppError: BODY_INVALID (not an Ed25519 key), DEVICE_KEY_MISMATCH (the login is bound to
            another key) or DEVICE_REVOKED (also for a key that was replaced).
    """
    try:
        public = public_jwk(key_load(dict(jwk)))
    except ValueError as error:
        raise AppError(ErrorCode.BODY_INVALID, str(error)) from error
    kid = public["kid"]
    if credential.device is not None and credential.device.kid != kid:
        raise AppError(ErrorCode.DEVICE_KEY_MISMATCH)
    device = _device_of_key(user, public, _name(name), now)
    was_revoked = device.revoked_at
    if was_revoked:
        _relink(device, was_revoked, credential)
    device.hardware = dict(hardware)
    device.trainer_version = trainer_version
    device.last_seen_at = now
    _login_bind(device, credential, now)
    device.save()
    if was_revoked:
        access_changed.send(User, user=user)
    return device


@transaction.atomic
def device_rename(device: Device, name: str) -> None:
    """Give a device another name."""
    old, device.name = device.name, _name(name)
    device.save(update_fields=("name",))
    audit_record(device.user, "device.renamed", device.public_id, {"old": old, "new": device.name})


@transaction.atomic
def device_revoke(actor: User | None, device: Device) -> None:
    """Take a device's access away, with its terminal login and tokens; what it did stays.

    Its peers go on the revocation list of every run that it joined.
    """
    if device.revoked_at:
        return
    access_changing.send(User, user=device.user)
    now = timezone.now()
    device.revoked_at = now
    device.save(update_fields=("revoked_at",))
    grant_end(device.user_id, device.grant_id, now)
    device.api_tokens.filter(revoked_at=None).update(revoked_at=now)
    audit_record(actor, "device.revoked", device.public_id, {"owner": device.user.username})
    access_changed.send(User, user=device.user)
    transaction.on_commit(access_changed_publish)


@transaction.atomic
def device_key_replace(actor: User | None, device: Device) -> None:
    """Give up a device's key, as after a theft: it is refused from now on, everywhere.

    The device keeps its history and waits for a new key: the first one that the account's owner
    joins with within a day, from a machine of the same name when several wait.
    """
    device_revoke(actor, device)
    device.rekey_at = timezone.now()
    device.save(update_fields=("rekey_at",))
    audit_record(actor, "device.key.given.up", device.public_id, {"kid": device.kid})


def device_seen(device: Device, now: datetime) -> None:
    """Remember that a device called."""
    if device.last_seen_at is None or device.last_seen_at <= now - SEEN_EVERY:
        device.last_seen_at = now
        device.save(update_fields=("last_seen_at",))


def _name(name: str) -> str:
    return " ".join(name.split())[:80] or "machine"


def _device_of_key(user: User, jwk: dict[str, str], name: str, now: datetime) -> Device:
    """Return the account's device with this key, or the one that waits for a new key, or a new one.

    Raises:
        AppError: DEVICE_REVOKED (the key was replaced).
    """
    kid = jwk["kid"]
    if RetiredDeviceKey.objects.filter(kid=kid, device__user=user).exists():
        raise AppError(ErrorCode.DEVICE_REVOKED, "This key was replaced by another one.")
    device = Device.objects.filter(user=user, kid=kid).first()
    if device is not None and device.rekey_at is not None:
        raise AppError(ErrorCode.DEVICE_REVOKED, "This key was given up by the device's owner.")
    if device is not None:
        return device
    waiting = _waiting(user, name, now)
    if waiting is None:
        device, is_new = Device.objects.get_or_create(
            user=user, kid=kid, defaults={"jwk": jwk, "name": name}
        )
        if is_new:
            audit_record(user, "device.linked", device.public_id, {"name": device.name})
        return device
    RetiredDeviceKey.objects.create(
        device=waiting, kid=waiting.kid, jwk=waiting.jwk, retired_at=now
    )
    audit_record(user, "device.key.replaced", waiting.public_id, {"old": waiting.kid, "new": kid})
    waiting.kid, waiting.jwk, waiting.rekey_at = kid, jwk, None
    return waiting


def _waiting(user: User, name: str, now: datetime) -> Device | None:
    """Return the device that a new key belongs to: the one of that name, or the only one."""
    rows = list(Device.objects.filter(user=user, rekey_at__gt=now - REKEY_WITHIN))
    named = [device for device in rows if device.name == name]
    found = named or rows
    return found[0] if len(found) == 1 else None


def _relink(device: Device, revoked_at: datetime, credential: Credential) -> None:
    made_at = credential.token.created_at if credential.token else None
    if credential.device is not None or (made_at and made_at <= revoked_at):
        raise AppError(ErrorCode.DEVICE_REVOKED)
    device.revoked_at = None
    audit_record(device.user, "device.linked", device.public_id, {"again": True})


def _login_bind(device: Device, credential: Credential, now: datetime) -> None:
    if credential.grant_id and credential.grant_id != device.grant_id:
        grant_end(device.user_id, device.grant_id, now)  # one machine, one login
        device.grant_id = credential.grant_id
    if credential.token is not None and credential.token.device_id is None:
        ApiToken.objects.filter(pk=credential.token.pk).update(device=device)
