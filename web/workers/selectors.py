"""Reads of managed workers."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, QuerySet, When

from training.protocol.states import RunState, WorkerState
from web.accounts.models import User
from web.monitoring.models import Peer, RunSwarm
from web.runs.models import Run
from web.workers.decide import Facts
from web.workers.launcher import process_mark, worker_folder
from web.workers.models import ManagedWorker
from web.workers.processes import TERM_SECONDS, is_alive, memory_mb_of

SEEN_SECONDS = 60.0
COORDINATOR_SECONDS = 30.0
"""A coordinator that leaves saves a last checkpoint and reports what it knows."""
_RUNS_THAT_TRAIN = (RunState.OPEN, RunState.PAUSED, RunState.FINISHING)
_IN_SWARM = ("training", "averaging", "waiting", "paused")


@dataclass(frozen=True)
class Heartbeat:
    """The last word of a process in its status file."""

    phase: str
    written_at: float
    """Seconds since the epoch."""


def service_name(run: Run) -> str:
    """Return the account that owns a run's managed workers."""
    return f"service-{run.slug}"


def token_name(worker: ManagedWorker) -> str:
    """Return what the token of a managed worker is called in its service account."""
    return f"managed {worker.name}"


def service_user(run: Run) -> User | None:
    return User.objects.filter(username=service_name(run), is_service=True).first()


def managed_workers(run: Run) -> QuerySet[ManagedWorker]:
    """Return a run's managed workers: the coordinator, then trainers, then auxiliary peers."""
    kind = Case(
        When(kind=ManagedWorker.Kind.COORDINATOR, then=0),
        When(kind=ManagedWorker.Kind.TRAINER, then=1),
        default=2,
    )
    return run.managed_workers.select_related("run").order_by(kind, "id")


def stop_seconds(worker: ManagedWorker) -> float:
    """Return how long a process of this kind may take to leave."""
    is_coordinator = worker.kind == ManagedWorker.Kind.COORDINATOR
    return COORDINATOR_SECONDS if is_coordinator else TERM_SECONDS


def heartbeat_read(worker: ManagedWorker) -> Heartbeat | None:
    """Return what the process on record wrote last, None before its first word."""
    files = (worker_folder(worker) / "home" / "runs").glob(f"*/{worker.run.slug}/status.json")
    try:
        path = max(files, key=lambda file: file.stat().st_mtime, default=None)
        if path is None:
            return None
        body, written_at = json.loads(path.read_text()), path.stat().st_mtime
    except (OSError, ValueError):
        return None  # replaced at this moment
    if not isinstance(body, dict) or body.get("pid") != worker.pid:
        return None  # an older process left it
    return Heartbeat(phase=str(body.get("phase", "")), written_at=written_at)


def worker_facts(worker: ManagedWorker, now: datetime) -> Facts:
    """Return everything that the decision about a managed worker needs."""
    heartbeat = heartbeat_read(worker)
    return Facts(
        is_wanted=worker.desired == ManagedWorker.Desired.RUNNING
        and worker.run.state in _RUNS_THAT_TRAIN,
        state=WorkerState(worker.state),
        has_process=worker.pid is not None,
        is_alive=is_alive(worker.pid, worker.process_started_at),
        may_start=worker.kind == ManagedWorker.Kind.COORDINATOR or _is_coordinated(worker.run, now),
        is_due=worker.start_after is None or worker.start_after <= now,
        num_restarts=worker.num_restarts,
        seconds_in_state=(now - worker.state_changed_at).total_seconds(),
        stop_seconds=stop_seconds(worker),
        heartbeat_age=now.timestamp() - heartbeat.written_at if heartbeat else None,
        is_seen_in_swarm=_is_seen(worker, heartbeat, now),
        is_over_memory=_is_over_memory(worker),
    )


def _is_over_memory(worker: ManagedWorker) -> bool:
    if worker.memory_mb is None or worker.pid is None:
        return False
    return memory_mb_of(process_mark(worker)) > worker.memory_mb


def _is_coordinated(run: Run, now: datetime) -> bool:
    """Return whether the coordinator that runs now has reported: newcomers can enter by it."""
    swarm = RunSwarm.objects.filter(run=run).first()
    if swarm is None or swarm.received_at is None:
        return False
    if now - swarm.received_at > timedelta(seconds=SEEN_SECONDS):
        return False
    coordinator = run.managed_workers.filter(kind=ManagedWorker.Kind.COORDINATOR).first()
    if coordinator is None:
        return True  # one that somebody else runs
    since = coordinator.process_started_at
    return since is not None and swarm.received_at.timestamp() >= since


def _is_seen(worker: ManagedWorker, heartbeat: Heartbeat | None, now: datetime) -> bool:
    """Return whether this very process trains by its own word and by the coordinator's.

    The records of a process that was killed stay in the swarm for a while, so neither suffices.
    """
    if heartbeat is None or heartbeat.phase not in _IN_SWARM:
        return False
    if worker.kind == ManagedWorker.Kind.COORDINATOR:
        return _is_coordinated(worker.run, now)
    peers = Peer.objects.filter(
        run=worker.run,
        device__name=worker.name,
        device__user__username=service_name(worker.run),
        seen_at__gte=now - timedelta(seconds=SEEN_SECONDS),
    )
    return peers.exists()
