"""Shutting people out of one run, and letting them in again."""

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.core.events import access_changed_publish
from web.runs.models import Run, RunBar, RunMember
from web.runs.services.runs import organiser_require
from web.runs.signals import run_bars_changed


@transaction.atomic
def run_bar_add(actor: User, run: Run, user: User, reason: str) -> RunBar:
    """Bar a person from this run: their peers are revoked, they get no pass, their streams end.

    Their account and other runs are not touched; a public run's page stays readable for them, as
    for everybody. Barring again replaces the reason.

    Raises:
        AppError: FORBIDDEN (not an organiser's to do, or an organiser of the run is meant) or
            BODY_INVALID (no reason).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    _right_require(actor, row, user)
    text = reason_require(reason)[:300]
    bar, _ = RunBar.objects.update_or_create(
        run=row,
        user=user,
        defaults={"reason": text, "barred_by": actor, "barred_at": timezone.now()},
    )
    audit_record(actor, "run.person.barred", f"{run.slug}/{user.username}", {"reason": bar.reason})
    run_bars_changed.send(Run, run=row)
    transaction.on_commit(access_changed_publish)
    return bar


@transaction.atomic
def run_bar_lift(actor: User, run: Run, user: User) -> None:
    """Let a barred person join again; lifting it again changes nothing.

    Raises:
        AppError: FORBIDDEN.
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    organiser_require(actor, row)
    deleted, _ = RunBar.objects.filter(run=row, user=user).delete()
    if not deleted:
        return
    audit_record(actor, "run.person.restored", f"{run.slug}/{user.username}")
    run_bars_changed.send(Run, run=row)
    transaction.on_commit(access_changed_publish)


def run_bar_is_allowed(run: Run, user: User) -> bool:
    """Whether an organiser of the run may bar this account: not their like, not a machine's."""
    is_organiser = (
        run.organiser_id == user.pk
        or run.members.filter(user=user, part=RunMember.Part.ORGANISER).exists()
    )
    return not (is_organiser or user.is_superuser or user.is_service)


def _right_require(actor: User, run: Run, user: User) -> None:
    organiser_require(actor, run)
    if not run_bar_is_allowed(run, user):
        raise AppError(
            ErrorCode.FORBIDDEN,
            "Organisers and the site's own machines cannot be barred from a run.",
        )
