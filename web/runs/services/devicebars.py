"""Shutting one machine out of one run, and letting it in again."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.core.events import access_changed_publish
from web.runs.models import Run, RunDeviceBar, RunMember
from web.runs.roles import DESK_PARTS, Right
from web.runs.selectors import right_require, run_rights
from web.runs.signals import run_bars_changed

MAX_REASON = 300


@transaction.atomic
def run_device_bar_add(
    actor: User, run: Run, device: Device, reason: str, *, expires_at: datetime | None = None
) -> RunDeviceBar:
    """Shut a machine out of this run: it goes on the revocation list and gets no pass here.

    Its login, its other runs, and its owner's other machines go on. Doing it again replaces
    reason and expiry.

    Raises:
        AppError: FORBIDDEN (not the actor's to do, or a machine of the site or of another
            organiser is meant) or
            BODY_INVALID (no reason, or an expiry that is over).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    right_require(actor, row, Right.MODERATE)
    if device.user.is_service:
        raise AppError(
            ErrorCode.FORBIDDEN, "The site's own machines are stopped on the desk instead."
        )
    if _has_part(row, device.user, DESK_PARTS) and Right.ROLES not in run_rights(actor, row):
        raise AppError(
            ErrorCode.FORBIDDEN, "Only organisers may shut out machines of people with a role here."
        )
    is_free_to = actor.is_superuser or actor.pk == device.user_id
    if not is_free_to and _has_part(row, device.user, {RunMember.Part.ORGANISER}):
        raise AppError(
            ErrorCode.FORBIDDEN,
            f"{device.user.username} organises this run too: ask them, or an administrator of the"
            " site. Only those may shut out an organiser's machine.",
        )
    now = timezone.now()
    text = reason_require(reason)[:MAX_REASON]
    expiry_require(expires_at, now)
    bar, _ = RunDeviceBar.objects.update_or_create(
        run=row,
        device=device,
        defaults={
            "reason": text, "barred_by": actor, "barred_at": now,
            "expires_at": expires_at,
        },
    )  # fmt: skip
    data = {"device": device.name, "owner": device.user.username, "reason": bar.reason}
    if expires_at:
        data["until"] = expires_at.isoformat()
    run_bars_changed.send(Run, run=row)
    audit_record(actor, "run.device.barred", f"{run.slug}/{device.public_id}", data)
    transaction.on_commit(access_changed_publish)
    return bar


@transaction.atomic
def run_device_bar_lift(actor: User | None, run: Run, device: Device, *, reason: str = "") -> None:
    """Let a machine in again; lifting it again changes nothing. None: the site itself.

    Raises:
        AppError: FORBIDDEN.
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    if actor is not None:
        right_require(actor, row, Right.MODERATE)
    bar = RunDeviceBar.objects.filter(run=row, device=device).first()
    if bar is None:
        return
    bar.delete()
    data = {"device": device.name, "before": {"reason": bar.reason}}
    if reason:
        data["reason"] = reason[:MAX_REASON]
    run_bars_changed.send(Run, run=row)
    audit_record(actor, "run.device.restored", f"{run.slug}/{device.public_id}", data)
    transaction.on_commit(access_changed_publish)


def expiry_require(expires_at: datetime | None, now: datetime) -> None:
    """Raise BODY_INVALID when a time is over before it begins."""
    if expires_at is not None and expires_at <= now:
        raise AppError(ErrorCode.BODY_INVALID, "expires_at: this time is over already.")


def _has_part(run: Run, user: User, parts: Collection[str]) -> bool:
    """Whether the person founded the run, runs the site, or has one of these parts."""
    is_founder = run.organiser_id == user.pk or user.is_superuser
    return is_founder or run.members.filter(user=user, part__in=parts).exists()
