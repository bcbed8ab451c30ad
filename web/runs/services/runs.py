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
from web.accounts.names import public_name
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.lifecycle import (
    OVER,
    IllegalMove,
    RunAction,
    is_due,
    state_after,
    state_sentence,
    until_check,
)
from web.runs.models import BootstrapPeer, Run, RunMember
from web.runs.roles import Right
from web.runs.selectors import right_require
from web.runs.signals import run_changed, run_created

ADDRESS_KEPT = timedelta(days=7)
"""An address that was not seen for so long is forgotten."""
MAX_MESSAGE = 200


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
    join_policy: str = Run.JoinPolicy.OPEN,
) -> Run:
    """Make a run as a draft.

    Raises:
        AppError: FORBIDDEN (not an organiser), BODY_INVALID (slug, title or way to join).
    """
    if not (actor.is_staff or actor.is_superuser) or actor.is_banned:
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers may make runs.")
    _slug_check(slug)
    title_check(title)
    join_policy_check(join_policy)
    try:
        with transaction.atomic():
            run = Run.objects.create(
                slug=slug,
                title=title.strip(),
                summary=summary[:300],
                description=description,
                organiser=actor,
                is_public=is_public,
                join_policy=join_policy,
            )
    except IntegrityError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"slug: {slug} is taken.") from error
    RunMember.objects.create(run=run, user=actor, part=RunMember.Part.ORGANISER)
    run_created.send(Run, run=run)
    data = {"title": run.title, "is_public": is_public, "join_policy": str(join_policy)}
    audit_record(actor, "run.created", slug, data)
    return run


def run_transition(
    actor: User, run: Run, event: str, reason: str = "", *, until: datetime | None = None
) -> Run:
    """Move the run: ``event`` is open, pause, finish or archive. The given row is updated too.

    ``until`` ends a pause: the site then opens the run again.

    Raises:
        AppError: FORBIDDEN, BODY_INVALID (no such event, or ``until`` does not fit),
            CONFIG_MISSING, RUN_NOT_OPEN or RUN_OVER (not allowed from its state).
    """
    organiser_require(actor, run)
    if event not in set(RunAction) - {RunAction.COMPLETE}:
        raise AppError(ErrorCode.BODY_INVALID, f"There is no move '{event[:40]}'.")
    action = RunAction(event)
    try:
        until_check(action, until, timezone.now())
    except IllegalMove as error:
        raise AppError(ErrorCode.BODY_INVALID, str(error)) from error
    return _move(actor, run, action, reason, until)


def run_complete(run: Run, reason: str = "", *, action: RunAction = RunAction.COMPLETE) -> Run:
    """The site's own moves: finish at the last epoch, and complete once everybody has left."""
    return _move(None, run, action, reason)


def runs_resume_due(now: datetime) -> int:
    """Open the runs whose pause has come to its end; return how many."""
    num = 0
    for run in Run.objects.filter(state=RunState.PAUSED, state_until__lte=now):
        with transaction.atomic():
            row = Run.objects.select_for_update().get(pk=run.pk)
            # An organiser may have been faster, or has paused anew in the meantime.
            if is_due(RunState(row.state), row.state_until, now):
                _move(None, row, RunAction.OPEN, "the pause has ended")
                num += 1
    return num


@transaction.atomic
def _move(
    actor: User | None, run: Run, action: RunAction, reason: str, until: datetime | None = None
) -> Run:
    row = Run.objects.select_for_update().get(pk=run.pk)
    old = RunState(row.state)
    try:
        new = state_after(old, action)
    except IllegalMove as error:
        code = ErrorCode.RUN_OVER if old in OVER else ErrorCode.RUN_NOT_OPEN
        raise AppError(code, str(error)) from error
    if action is RunAction.OPEN and not row.configs.exists():
        raise AppError(ErrorCode.CONFIG_MISSING, "A run opens with a published config only.")
    name = public_name(actor) if actor else ""
    row.state, row.state_changed_at, row.state_until = new, timezone.now(), until
    row.state_reason = state_sentence(action, name, reason, until)
    fields = ["state", "state_reason", "state_changed_at", "state_until"]
    if old is RunState.DRAFT and action is RunAction.ARCHIVE and row.is_public:
        row.is_public = False  # a draft that nobody else saw is not shown for having been given up
        fields.append("is_public")
    row.save(update_fields=fields)
    for field in fields:
        setattr(run, field, getattr(row, field))
    text = f"The run was {row.state_reason}"
    run_changed.send(Run, run=run, kind="state.changed", text=text)
    data = {"old": str(old), "new": str(new), "reason": reason[:300]}
    if until is not None:
        data["until"] = until.isoformat()
    if "is_public" in fields:
        data["is_public"] = "no"
    audit_record(actor, "run.state.changed", run.slug, data)
    return run


def run_message_send(actor: User, run: Run, text: str) -> None:
    """Tell everybody who watches the run: a line in its events feed.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID (empty, or longer than 200 characters).
    """
    organiser_require(actor, run)
    line = " ".join(text.split())
    if not 0 < len(line) <= MAX_MESSAGE:
        raise AppError(ErrorCode.BODY_INVALID, f"text: 1 to {MAX_MESSAGE} characters are needed.")
    with transaction.atomic():
        said = f"{public_name(actor)} says: {line}"
        run_changed.send(Run, run=run, kind="message.sent", text=said)
        audit_record(actor, "run.message.sent", run.slug, {"text": line})


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


def title_check(title: str) -> None:
    """Raise BODY_INVALID unless a run may be called so."""
    if not title.strip() or len(title) > 120:
        raise AppError(ErrorCode.BODY_INVALID, "title: 1 to 120 characters are needed.")


def join_policy_check(policy: str) -> None:
    """Raise BODY_INVALID unless it is a known way to join."""
    if policy not in Run.JoinPolicy.values:
        raise AppError(ErrorCode.BODY_INVALID, "join_policy: open or approval.")


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
