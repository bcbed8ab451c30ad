"""Parts in a run: given and taken by its organisers."""

from django.db import transaction

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.events import access_changed_publish
from web.runs.models import Run, RunMember
from web.runs.roles import Right
from web.runs.selectors import bar_refuse, right_require, run_organisers

Part = RunMember.Part


@transaction.atomic
def run_member_add(actor: User, run: Run, user: User, part: str, *, reason: str = "") -> RunMember:
    """Give an account a part in the run, instead of the one that it has.

    Raises:
        AppError: FORBIDDEN (not an organiser's to do, or the founder is meant), BODY_INVALID (no
            such part, a machine's account, the last organiser), or BARRED (let the person in
            again first).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    right_require(actor, row, Right.ROLES)
    if part not in Part.values:
        raise AppError(ErrorCode.BODY_INVALID, f"part: one of {', '.join(Part.values)}.")
    if user.is_service:
        raise AppError(ErrorCode.BODY_INVALID, "user: this account belongs to a machine.")
    bar_refuse(row, user)
    before = _part_of(row, user)
    if before == Part.ORGANISER and part != Part.ORGANISER:
        _organiser_leave(actor, row, user)
    member, _ = RunMember.objects.update_or_create(run=row, user=user, defaults={"part": part})
    if before != part:
        _audit(actor, row, "run.member.added", user, before=before, after=part, reason=reason)
    run.organiser_id = row.organiser_id
    transaction.on_commit(access_changed_publish)
    return member


@transaction.atomic
def run_member_remove(actor: User, run: Run, user: User, *, reason: str = "") -> None:
    """Take an account's part away; a private run closes for it. Again: changes nothing.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (the last organiser).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    right_require(actor, row, Right.ROLES)
    before = _part_of(row, user)
    if not before:
        return
    if before == Part.ORGANISER:
        _organiser_leave(actor, row, user)
    RunMember.objects.filter(run=row, user=user).delete()
    _audit(actor, row, "run.member.removed", user, before=before, after="", reason=reason)
    run.organiser_id = row.organiser_id
    transaction.on_commit(access_changed_publish)


def _part_of(run: Run, user: User) -> str:
    if run.organiser_id == user.pk:
        return Part.ORGANISER
    member = RunMember.objects.filter(run=run, user=user).first()
    return member.part if member else ""


def _organiser_leave(actor: User, run: Run, user: User) -> None:
    """Let an organiser go; when it is the founder, who organises longest takes that place."""
    others = [
        other
        for other in run_organisers(run)
        if other.pk != user.pk and other.is_active and not other.is_banned
    ]
    if not others:
        raise AppError(
            ErrorCode.BODY_INVALID,
            "A run needs an organiser: give somebody else the part first.",
        )
    if run.organiser_id != user.pk:
        return
    if actor.pk != user.pk and not actor.is_superuser:
        raise AppError(
            ErrorCode.FORBIDDEN, "The run's founder can only give the part up, or an admin take it."
        )
    run.organiser = others[0]
    run.save(update_fields=("organiser",))


def _audit(
    actor: User, run: Run, code: str, user: User, *, before: str, after: str, reason: str
) -> None:
    data = {
        "user": user.username,
        "part": after,
        "before": {"part": before or "none"},
        "after": {"part": after or "none"},
    }
    if reason.strip():
        data["reason"] = reason.strip()[:200]
    audit_record(actor, code, run.slug, data)
