"""What to do about one managed worker now. Pure: facts in, one action out."""

from dataclasses import dataclass
from enum import StrEnum

from training.protocol.states import WorkerState

MAX_RESTARTS = 8
BACK_OFF_SECONDS = (2.0, 300.0)
HEALTHY_SECONDS = 600.0
"""After this long in good health, earlier failures are forgotten."""
STARTING_SECONDS = 30.0
"""A claimed start that has no process after this was never made: its launcher died."""
SILENT_SECONDS = 180.0
"""A process whose heartbeat file is older than this hangs. Loading torch on a busy machine
takes a minute, so raise it when slow machines see their trainers killed while they start."""

_UP = (WorkerState.RUNNING, WorkerState.TRAINING)


class Action(StrEnum):
    NOTHING = "nothing"
    START = "start"
    STOP = "stop"
    """Ask it to leave."""
    END = "end"
    """Kill what is left of one that was asked to leave."""
    NOTE_RUNNING = "note_running"
    NOTE_TRAINING = "note_training"
    NOTE_STOPPED = "note_stopped"
    BACK_OFF = "back_off"
    KILL = "kill"
    KILL_GREEDY = "kill_greedy"
    """It takes more memory than it was given."""
    GIVE_UP = "give_up"
    FORGIVE = "forgive"


@dataclass(frozen=True)
class Facts:
    """What is wanted and what is observed of a managed worker.

    A process is on record only while it starts, runs or stops.
    """

    is_wanted: bool
    state: WorkerState
    has_process: bool
    """A process is on record, alive or not."""
    is_alive: bool
    may_start: bool
    """Its run is open and, for a trainer, its coordinator reports."""
    is_due: bool
    """The back-off is over."""
    num_restarts: int
    seconds_in_state: float
    stop_seconds: float
    """How long one of its kind may take to leave."""
    heartbeat_age: float | None
    """Of the heartbeat file, seconds; None before the first."""
    is_seen_in_swarm: bool
    is_over_memory: bool = False


def decide(facts: Facts) -> Action:
    """Return the one next action; the rest follows at the next look."""
    if facts.state is WorkerState.STOPPING:
        return _stopping(facts)
    is_launched_now = facts.state is WorkerState.STARTING and not facts.has_process
    if is_launched_now and facts.seconds_in_state < STARTING_SECONDS:
        return Action.NOTHING
    if not facts.is_wanted:
        return _unwanted(facts)
    if facts.state in (WorkerState.STARTING, *_UP):
        return _alive(facts) if facts.is_alive else Action.BACK_OFF
    return _startable(facts)


def back_off_seconds(num_restarts: int) -> float:
    """Return the wait before the next start after this many failures in a row."""
    first, longest = BACK_OFF_SECONDS
    return min(longest, first * 2.0 ** min(num_restarts, 16))


def _stopping(facts: Facts) -> Action:
    """One that leaves is asked once: a second signal would mean "at once"."""
    if not facts.is_alive:
        return Action.NOTE_STOPPED
    return Action.END if facts.seconds_in_state > facts.stop_seconds else Action.NOTHING


def _unwanted(facts: Facts) -> Action:
    if facts.state in (WorkerState.STARTING, *_UP):
        return Action.STOP if facts.is_alive or facts.state not in _UP else Action.NOTE_STOPPED
    return Action.NOTHING if facts.state is WorkerState.STOPPED else Action.NOTE_STOPPED


def _startable(facts: Facts) -> Action:
    """No process is there: one that failed too often stays so until somebody wants it again."""
    if facts.state is WorkerState.FAILED:
        return Action.NOTHING
    if facts.state is WorkerState.BACKING_OFF and facts.num_restarts >= MAX_RESTARTS:
        return Action.GIVE_UP
    return Action.START if facts.may_start and facts.is_due else Action.NOTHING


def _alive(facts: Facts) -> Action:
    if facts.is_over_memory:
        return Action.KILL_GREEDY
    if facts.heartbeat_age is None:
        is_late = facts.state is WorkerState.STARTING and facts.seconds_in_state > SILENT_SECONDS
        return Action.KILL if is_late else Action.NOTHING
    if facts.heartbeat_age > SILENT_SECONDS:
        return Action.KILL
    if facts.state not in _UP:
        return Action.NOTE_RUNNING
    if facts.state is WorkerState.RUNNING and facts.is_seen_in_swarm:
        return Action.NOTE_TRAINING
    if facts.state is WorkerState.TRAINING and not facts.is_seen_in_swarm:
        return Action.NOTE_RUNNING
    if facts.num_restarts and facts.seconds_in_state > HEALTHY_SECONDS:
        return Action.FORGIVE
    return Action.NOTHING
