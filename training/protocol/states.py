"""States of runs, peers and managed workers, and the moves allowed between them."""

from enum import StrEnum


class RunState(StrEnum):
    """What the organiser wants of a run (kept in the database)."""

    DRAFT = "draft"
    OPEN = "open"
    PAUSED = "paused"
    FINISHING = "finishing"
    FINISHED = "finished"
    ARCHIVED = "archived"


RUN_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.DRAFT: frozenset({RunState.OPEN, RunState.ARCHIVED}),
    RunState.OPEN: frozenset({RunState.PAUSED, RunState.FINISHING}),
    RunState.PAUSED: frozenset({RunState.OPEN, RunState.FINISHING}),
    RunState.FINISHING: frozenset({RunState.FINISHED}),
    RunState.FINISHED: frozenset({RunState.ARCHIVED}),
    RunState.ARCHIVED: frozenset(),
}


class LiveState(StrEnum):
    """What the evidence says that the swarm does now (derived, never stored as truth)."""

    DRAFT = "draft"
    WAITING_FOR_PEERS = "waiting_for_peers"
    WARMING_UP = "warming_up"
    TRAINING = "training"
    AVERAGING = "averaging"
    PAUSED = "paused"
    STALLED = "stalled"
    FINISHING = "finishing"
    FINISHED = "finished"
    UNKNOWN = "unknown"


class PeerState(StrEnum):
    """What the evidence says of one peer."""

    JOINING = "joining"
    SYNCING = "syncing"
    TRAINING = "training"
    AVERAGING = "averaging"
    SILENT = "silent"
    LEFT = "left"
    BANNED = "banned"


class Reach(StrEnum):
    DIRECT = "direct"
    RELAYED = "relayed"
    CLIENT = "client"
    UNKNOWN = "unknown"


class Role(StrEnum):
    TRAINER = "trainer"
    AUXILIARY = "auxiliary"
    COORDINATOR = "coordinator"


class WorkerState(StrEnum):
    """Observed state of a process that the platform launched."""

    REQUESTED = "requested"
    STARTING = "starting"
    RUNNING = "running"
    TRAINING = "training"
    STOPPING = "stopping"
    STOPPED = "stopped"
    BACKING_OFF = "backing_off"
    FAILED = "failed"


WORKER_TRANSITIONS: dict[WorkerState, frozenset[WorkerState]] = {
    WorkerState.REQUESTED: frozenset({WorkerState.STARTING, WorkerState.STOPPED}),
    WorkerState.STARTING: frozenset(
        {WorkerState.RUNNING, WorkerState.BACKING_OFF, WorkerState.STOPPING, WorkerState.FAILED}
    ),
    WorkerState.RUNNING: frozenset(
        {WorkerState.TRAINING, WorkerState.STOPPING, WorkerState.BACKING_OFF, WorkerState.STOPPED}
    ),
    WorkerState.TRAINING: frozenset(
        {WorkerState.RUNNING, WorkerState.STOPPING, WorkerState.BACKING_OFF, WorkerState.STOPPED}
    ),
    WorkerState.STOPPING: frozenset({WorkerState.STOPPED}),
    WorkerState.STOPPED: frozenset({WorkerState.REQUESTED, WorkerState.STARTING}),
    WorkerState.BACKING_OFF: frozenset(
        {WorkerState.STARTING, WorkerState.FAILED, WorkerState.STOPPED}
    ),
    WorkerState.FAILED: frozenset({WorkerState.REQUESTED, WorkerState.STOPPED}),
}


class CreditState(StrEnum):
    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class Command(StrEnum):
    """What a trainer is told in the answer to its heartbeat."""

    PAUSE = "pause"
    RESUME = "resume"
    FINISH = "finish"
    RELOAD_STATE = "reload_state"
    UPGRADE = "upgrade"
