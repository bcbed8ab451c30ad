"""Which moves of a run are allowed, and what its state is then called. Pure."""

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


def state_sentence(action: RunAction, actor: str, reason: str) -> str:
    """Return the move in words, such as ``paused by alice: disk full``."""
    by = f" by {actor}" if actor else ""
    why = f": {' '.join(reason.split())}" if reason.strip() else ""
    return f"{_PARTICIPLES[action]}{by}{why}"[:MAX_REASON]
