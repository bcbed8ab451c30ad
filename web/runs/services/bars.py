"""Shutting people out of one run, for good or for a time, and letting them in again."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.core.events import access_changed_publish
from web.runs.models import Run, RunBar, RunDeviceBar, RunMember
from web.runs.roles import DESK_PARTS, Right
from web.runs.selectors import right_require, run_rights
from web.runs.services.devicebars import (
    MAX_REASON,
    expiry_require,
    run_device_bar_lift,
)
from web.runs.signals import run_bars_changed


@transaction.atomic
def run_bar_add(
    actor: User, run: Run, user: User, reason: str, *, expires_at: datetime | None = None
) -> RunBar:
    """Bar a person from this run: their peers are revoked, they get no pass, their streams end.

    Their account and other runs are not touched; a public run's page stays readable for them, as
    for everybody. A role at the desk ends. Barring again replaces reason and expiry.

    Raises:
        AppError: FORBIDDEN (not the actor's to do, or an organiser of the run is meant) or
            BODY_INVALID (no reason, or an expiry that is over).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    _right_require(actor, row, user)
    now = timezone.now()
    text = reason_require(reason)[:MAX_REASON]
    expiry_require(expires_at, now)
    bar, _ = RunBar.objects.update_or_create(
        run=row,
        user=user,
        defaults={
            "reason": text, "barred_by": actor, "barred_at": now, "expires_at": expires_at,
        },
    )  # fmt: skip
    lost = RunMember.objects.filter(run=row, user=user, part__in=DESK_PARTS)
    part = lost.values_list("part", flat=True).first()
    lost.update(part=RunMember.Part.VOLUNTEER)
    data = {"reason": bar.reason}
    if expires_at:
        data["until"] = expires_at.isoformat()
    if part:
        data["part_lost"] = part
    run_bars_changed.send(Run, run=row)
    audit_record(actor, "run.person.barred", f"{run.slug}/{user.username}", data)
    transaction.on_commit(access_changed_publish)
    return bar


@transaction.atomic
def run_bar_lift(actor: User | None, run: Run, user: User, *, reason: str = "") -> None:
    """Let a barred person join again; lifting it again changes nothing. None: the site itself.

    Raises:
        AppError: FORBIDDEN.
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    if actor is not None:
        right_require(actor, row, Right.MODERATE)
    bar = RunBar.objects.filter(run=row, user=user).first()
    if bar is None:
        return
    bar.delete()
    data = {"before": {"reason": bar.reason}} | ({"reason": reason[:MAX_REASON]} if reason else {})
    run_bars_changed.send(Run, run=row)
    audit_record(actor, "run.person.restored", f"{run.slug}/{user.username}", data)
    transaction.on_commit(access_changed_publish)


def run_bars_expire(now: datetime) -> int:
    """Lift the bars whose time is over; return how many."""
    over = {"expires_at__lte": now}
    people = list(RunBar.objects.filter(**over).select_related("run", "user"))
    for bar in people:
        run_bar_lift(None, bar.run, bar.user, reason="its time was over")
    machines = list(RunDeviceBar.objects.filter(**over).select_related("run", "device"))
    for machine in machines:
        run_device_bar_lift(None, machine.run, machine.device, reason="its time was over")
    return len(people) + len(machines)


def run_bar_is_allowed(run: Run, user: User) -> bool:
    """Whether this account may be barred from the run: organisers and machines may not."""
    is_organiser = (
        run.organiser_id == user.pk
        or run.members.filter(user=user, part=RunMember.Part.ORGANISER).exists()
    )
    return not (is_organiser or user.is_superuser or user.is_service)


def _right_require(actor: User, run: Run, user: User) -> None:
    right_require(actor, run, Right.MODERATE)
    if not run_bar_is_allowed(run, user):
        raise AppError(
            ErrorCode.FORBIDDEN,
            "Organisers and the site's own machines cannot be barred from a run.",
        )
    has_seat = run.members.filter(user=user, part__in=DESK_PARTS).exists()
    if has_seat and Right.ROLES not in run_rights(actor, run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers may bar people with a role here.")
