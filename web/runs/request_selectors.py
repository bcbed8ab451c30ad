"""Reads of requests to join, and whether somebody has to ask."""

from datetime import datetime, timedelta

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run, RunJoinRequest
from web.runs.selectors import is_inside

ASK_AGAIN_AFTER = timedelta(days=1)
"""A person who was refused may ask again then."""
_State = RunJoinRequest.State


def join_request_of(run: Run, user: User) -> RunJoinRequest | None:
    """Return what the person asked, None when they never did."""
    return RunJoinRequest.objects.filter(run=run, user=user).first()


def approval_is_missing(run: Run, user: User) -> bool:
    """Whether the run wants to be asked, and the person has neither a part in it nor a yes."""
    if run.join_policy == Run.JoinPolicy.OPEN or is_inside(user, run):
        return False
    return not RunJoinRequest.objects.filter(run=run, user=user, state=_State.APPROVED).exists()


def approval_require(run: Run, user: User) -> None:
    """Raise APPROVAL_PENDING, in words, while the person may not join."""
    if not approval_is_missing(run, user):
        return
    asked = join_request_of(run, user)
    if asked is None:
        text = "You have not asked to join this run yet."
    elif asked.state == _State.REFUSED:
        text = f"You were refused: {asked.reason}"
    else:
        text = f"You asked on {asked.asked_at:%Y-%m-%d %H:%M} UTC; nobody has decided yet."
    raise AppError(ErrorCode.APPROVAL_PENDING, text)


def asks_again_at(asked: RunJoinRequest | None) -> datetime | None:
    """Return from when on a person who was refused may ask again; None: nothing to wait for."""
    if asked is None or asked.state != _State.REFUSED or asked.decided_at is None:
        return None
    return asked.decided_at + ASK_AGAIN_AFTER


def join_requests_open(run: Run) -> int:
    """Return how many wait for a decision; none do where everybody may join, nor the banned."""
    if run.join_policy == Run.JoinPolicy.OPEN:
        return 0
    waiting = RunJoinRequest.objects.filter(run=run, state=_State.PENDING)
    return waiting.filter(user__banned_at=None).count()
