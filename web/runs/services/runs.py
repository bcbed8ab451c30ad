"""Runs: made, moved from state to state, entered at known addresses."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.lifecycle import OVER, IllegalMove, RunAction, state_after, state_sentence
from web.runs.models import BootstrapPeer, Run, RunMember
from web.runs.roles import Right
from web.runs.selectors import right_require
from web.runs.signals import run_changed

ADDRESS_KEPT = timedelta(days=7)
"""An address that was not seen for so long is forgotten."""


def organiser_require(actor: User, run: Run) -> None:
    """Raise FORBIDDEN unless the actor organises the run."""
    right_require(actor, run, Right.ORGANISE)


@transaction.atomic
def run_create(
    actor: User,
    *,
    slug: str,
    title: str,
    summary: str,
    description: str = "",
    is_public: bool = True,
) -> Run:
    """Make a run as a draft.

    Raises:
        AppError: FORBIDDEN (not an organiser), BODY_INVALID (slug or title).
    """
    if not (actor.is_staff or actor.is_superuser) or actor.is_banned:
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers may make runs.")
    _slug_check(slug)
    if not title.strip() or len(title) > 120:
        raise AppError(ErrorCode.BODY_INVALID, "title: 1 to 120 characters are needed.")
    try:
        with transaction.atomic():
            run = Run.objects.create(
                slug=slug,
                title=title.strip(),
                summary=summary[:300],
                description=description,
                organiser=actor,
                is_public=is_public,
            )
    except IntegrityError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"slug: {slug} is taken.") from error
    RunMember.objects.create(run=run, user=actor, part=RunMember.Part.ORGANISER)
    audit_record(actor, "run.created", slug, {"title": run.title, "is_public": is_public})
    return run


def run_transition(actor: User, run: Run, event: str, reason: str = "") -> Run:
    """Move the run: ``event`` is open, pause, finish or archive. The given row is updated too.

    Raises:
        AppError: FORBIDDEN, BODY_INVALID (no such event), CONFIG_MISSING, RUN_NOT_OPEN or
            RUN_OVER (not allowed from its state).
    """
    organiser_require(actor, run)
    if event not in set(RunAction) - {RunAction.COMPLETE}:
        raise AppError(ErrorCode.BODY_INVALID, f"There is no move '{event[:40]}'.")
    return _move(actor, run, RunAction(event), reason)


def run_complete(run: Run, reason: str = "", *, action: RunAction = RunAction.COMPLETE) -> Run:
    """The site's own moves: finish at the last epoch, and complete once everybody has left."""
    return _move(None, run, action, reason)


@transaction.atomic
def _move(actor: User | None, run: Run, action: RunAction, reason: str) -> Run:
    row = Run.objects.select_for_update().get(pk=run.pk)
    old = RunState(row.state)
    try:
        new = state_after(old, action)
    except IllegalMove as error:
        code = ErrorCode.RUN_OVER if old in OVER else ErrorCode.RUN_NOT_OPEN
        raise AppError(code, str(error)) from error
    if action is RunAction.OPEN and not row.configs.exists():
        raise AppError(ErrorCode.CONFIG_MISSING, "A run opens with a published config only.")
    name = actor.get_username() if actor else ""
    row.state, row.state_changed_at = new, timezone.now()
    row.state_reason = state_sentence(action, name, reason)
    row.save(update_fields=("state", "state_reason", "state_changed_at"))
    for field in ("state", "state_reason", "state_changed_at"):
        setattr(run, field, getattr(row, field))
    audit_record(
        actor,
        "run.state.changed",
        run.slug,
        {"old": str(old), "new": str(new), "reason": reason[:300]},
    )
    run_changed.send(Run, run=run, kind="state.changed", text=f"The run was {row.state_reason}")
    return run


def bootstrap_peers_mark(run: Run, lineage: int, addresses: Iterable[str], now: datetime) -> None:
    """Remember that the swarm could be entered at these addresses."""
    rows = [
        BootstrapPeer(run=run, lineage=lineage, address=address, seen_at=now)
        for address in dict.fromkeys(addresses)
        if 0 < len(address) <= 300
    ]
    if not rows:
        return
    BootstrapPeer.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["seen_at"],
        unique_fields=["run", "lineage", "address"],
    )
    run.bootstrap_peers.filter(seen_at__lt=now - ADDRESS_KEPT).delete()


def _slug_check(slug: str) -> None:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"slug: {error.messages[0]}") from error
    parts = slug.split("-")
    if slug != slug.lower() or "_" in slug or not all(parts) or len(slug) > 60:
        raise AppError(
            ErrorCode.BODY_INVALID,
            "slug: at most 60 lower-case letters, digits and single hyphens.",
        )
