"""Which moves of a run are allowed, and what its state is then called. Pure."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from training.protocol.states import RUN_TRANSITIONS, RunState


class RunAction(StrEnum):
    OPEN = "open"
    PAUSE = "pause"
    FINISH = "finish"
    COMPLETE = "complete"
    """The site itself: everybody has left a finishing run."""
    ARCHIVE = "archive"


_TARGETS = {
    RunAction.OPEN: RunState.OPEN,
    RunAction.PAUSE: RunState.PAUSED,
    RunAction.FINISH: RunState.FINISHING,
    RunAction.COMPLETE: RunState.FINISHED,
    RunAction.ARCHIVE: RunState.ARCHIVED,
}
_PARTICIPLES = {
    RunAction.OPEN: "opened",
    RunAction.PAUSE: "paused",
    RunAction.FINISH: "finished",
    RunAction.COMPLETE: "finished",
    RunAction.ARCHIVE: "archived",
}
_NOUNS = {
    RunState.DRAFT: "A draft",
    RunState.OPEN: "An open run",
    RunState.PAUSED: "A paused run",
    RunState.FINISHING: "A run that is finishing",
    RunState.FINISHED: "A finished run",
    RunState.ARCHIVED: "An archived run",
}
MAX_REASON = 300
JOINABLE = frozenset({RunState.OPEN})
COORDINATED = frozenset({RunState.OPEN, RunState.PAUSED, RunState.FINISHING})
"""A coordinator also keeps a paused or finishing swarm together."""
OVER = frozenset({RunState.FINISHING, RunState.FINISHED, RunState.ARCHIVED})


MIN_PAUSE, MAX_PAUSE = timedelta(minutes=1), timedelta(days=90)
"""How far ahead the end of a pause may lie."""


class IllegalMove(ValueError):
    """The state does not allow the action; the text says so to the organiser."""


def state_after(state: RunState, action: RunAction) -> RunState:
    """Return the state that ``action`` leads to.

    Raises:
        IllegalMove: not from this state.
    """
    target = _TARGETS[action]
    if target not in RUN_TRANSITIONS[state]:
        raise IllegalMove(f"{_NOUNS[state]} cannot be {_PARTICIPLES[action]}.")
    return target


def until_check(action: RunAction, until: datetime | None, now: datetime) -> None:
    """Accept the end of a pause.

    Raises:
        IllegalMove: the move has no end, or the end is too near or too far.
    """
    if until is None:
        return
    if action is not RunAction.PAUSE:
        raise IllegalMove("until: only a pause ends by itself.")
    if not now + MIN_PAUSE <= until <= now + MAX_PAUSE:
        raise IllegalMove("until: a pause ends in one minute at the earliest, in 90 days at last.")


def is_due(state: RunState, until: datetime | None, now: datetime) -> bool:
    """Whether a pause has come to its end."""
    return state is RunState.PAUSED and until is not None and until <= now


def state_sentence(
    action: RunAction, actor: str, reason: str, until: datetime | None = None
) -> str:
    """Return the move in words: ``paused by alice until 2026-12-02 18:00 UTC: disk full``."""
    by = f" by {actor}" if actor else ""
    by += f" until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if until else ""
    why = f": {' '.join(reason.split())}" if reason.strip() else ""
    return f"{_PARTICIPLES[action]}{by}{why}"[:MAX_REASON]
