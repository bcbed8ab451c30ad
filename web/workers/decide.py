"""What to do about one managed worker now. Pure: facts in, one action out."""

from dataclasses import dataclass
from enum import StrEnum

from training.protocol.states import WorkerState

MAX_RESTARTS = 8
BACK_OFF_SECONDS = (2.0, 300.0)
HEALTHY_SECONDS = 600.0
"""After this long in good health, earlier failures are forgotten."""
STARTING_SECONDS = 120.0
"""A claimed start without a live process is given up after this."""
SILENT_SECONDS = 180.0
"""A process whose heartbeat file is older than this hangs."""

_UP = (WorkerState.RUNNING, WorkerState.TRAINING)


class Action(StrEnum):
    NOTHING = "nothing"
    START = "start"
    STOP = "stop"
    NOTE_RUNNING = "note_running"
    NOTE_TRAINING = "note_training"
    NOTE_STOPPED = "note_stopped"
    BACK_OFF = "back_off"
    KILL = "kill"
    GIVE_UP = "give_up"
    FORGIVE = "forgive"


@dataclass(frozen=True)
class Facts:
    """What is wanted and what is observed of a managed worker."""

    is_wanted: bool
    state: WorkerState
    is_alive: bool
    may_start: bool
    """Its run is open and, for a trainer, its coordinator reports."""
    is_due: bool
    """The back-off is over."""
    num_restarts: int
    seconds_in_state: float
    heartbeat_age: float | None
    """Of the heartbeat file, seconds; None before the first."""
    is_seen_in_swarm: bool


def decide(facts: Facts) -> Action:
    """Return the one next action; the rest follows at the next look."""
    if not facts.is_wanted:
        return _unwanted(facts)
    if facts.is_alive:
        return _alive(facts)
    if facts.state is WorkerState.FAILED:
        return Action.NOTHING
    if facts.state is WorkerState.STARTING and facts.seconds_in_state < STARTING_SECONDS:
        return Action.NOTHING  # another process is launching it at this moment
    if facts.state in (WorkerState.STARTING, WorkerState.STOPPING, *_UP):
        return Action.GIVE_UP if facts.num_restarts >= MAX_RESTARTS else Action.BACK_OFF
    return Action.START if facts.may_start and facts.is_due else Action.NOTHING


def back_off_seconds(num_restarts: int) -> float:
    """Return the wait before the next start after this many failures in a row."""
    first, longest = BACK_OFF_SECONDS
    return min(longest, first * 2.0 ** min(num_restarts, 16))


def _unwanted(facts: Facts) -> Action:
    if facts.is_alive:
        return Action.STOP
    return Action.NOTHING if facts.state is WorkerState.STOPPED else Action.NOTE_STOPPED


def _alive(facts: Facts) -> Action:
    if facts.heartbeat_age is not None and facts.heartbeat_age > SILENT_SECONDS:
        return Action.KILL
    if facts.heartbeat_age is None:
        return Action.KILL if facts.seconds_in_state > SILENT_SECONDS else Action.NOTHING
    if facts.state not in _UP:
        return Action.NOTE_RUNNING
    if facts.state is WorkerState.RUNNING and facts.is_seen_in_swarm:
        return Action.NOTE_TRAINING
    if facts.state is WorkerState.TRAINING and not facts.is_seen_in_swarm:
        return Action.NOTE_RUNNING
    if facts.num_restarts and facts.seconds_in_state > HEALTHY_SECONDS:
        return Action.FORGIVE
    return Action.NOTHING
