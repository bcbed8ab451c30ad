"""What people want of managed workers, and how all of them are stopped with the site."""

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.protocol.states import WorkerState
from web.accounts.models import User
from web.core.audit import audit_record
from web.runs.models import Run
from web.workers.evaluations import evaluations_stop
from web.workers.journal import event_note, state_note
from web.workers.launcher import process_mark
from web.workers.models import ManagedWorker, WorkerNode, node_here
from web.workers.nodes import is_away, node_queue
from web.workers.places import start_require
from web.workers.processes import is_alive, remains_kill, terminate, wait_until
from web.workers.reconcile import managed_worker_reconcile, managed_workers_reconcile
from web.workers.selectors import stop_seconds

__all__ = [
    "Placement",
    "log_ask",
    "managed_worker_create",
    "managed_worker_reconcile",
    "managed_worker_restart",
    "managed_worker_start",
    "managed_worker_stop",
    "managed_workers_reconcile",
    "workers_stop_all",
]

logger = logging.getLogger(__name__)
_LOG_EXPIRES_SECONDS = 5.0


@dataclass(frozen=True)
class Placement:
    """Where a managed worker runs, and with what."""

    node: str = field(default_factory=node_here)
    device: str = ""
    """``cpu`` or ``cuda:N``; empty: what the trainer finds."""
    threads: int = 1
    memory_mb: int | None = None
    hours: float | None = None
    """How long it is wanted; None: until somebody stops it."""


@transaction.atomic
def managed_worker_create(
    actor: User, run: Run, kind: str, name: str, placement: Placement | None = None
) -> ManagedWorker:
    """Return a new managed worker that should run; celery of its node starts it."""
    place = placement or Placement()
    worker = ManagedWorker.objects.create(
        run=run,
        kind=ManagedWorker.Kind(kind),
        name=name,
        node=place.node,
        device=place.device,
        threads=place.threads,
        memory_mb=place.memory_mb,
        hours=place.hours,
        wanted_until=_until(place.hours, timezone.now()),
    )
    event_note(worker, "requested", f"by {actor.username}")
    data = {
        "kind": kind,
        "node": place.node,
        "device": place.device,
        "threads": place.threads,
        "memory_mb": place.memory_mb,
        "hours": place.hours,
    }
    audit_record(actor, "worker.requested", f"{run.slug}/{name}", data)
    _look_soon(worker)
    return worker


@transaction.atomic
def managed_worker_start(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to run; earlier failures are forgotten, its hours begin anew.

    Raises:
        AppError: BODY_INVALID (its node is away or has no room any more) or RUN_OVER.
    """
    start_require(worker, timezone.now())
    ManagedWorker.objects.filter(pk=worker.pk).update(
        desired=ManagedWorker.Desired.RUNNING,
        num_restarts=0,
        start_after=None,
        wanted_until=_until(worker.hours, timezone.now()),
    )
    ManagedWorker.objects.filter(pk=worker.pk, state=WorkerState.FAILED).update(
        state=WorkerState.REQUESTED, state_changed_at=timezone.now()
    )
    event_note(worker, "wanted", f"by {actor.username}")
    audit_record(actor, "worker.wanted", f"{worker.run.slug}/{worker.name}")
    _look_soon(worker)


@transaction.atomic
def managed_worker_restart(actor: User, worker: ManagedWorker) -> None:
    """Have a managed worker leave and start again; its hours begin anew.

    Raises:
        AppError: BODY_INVALID (its node is away or has no room any more) or RUN_OVER.
    """
    start_require(worker, timezone.now())
    ManagedWorker.objects.filter(pk=worker.pk).update(
        desired=ManagedWorker.Desired.RESTARTING,
        num_restarts=0,
        start_after=None,
        wanted_until=_until(worker.hours, timezone.now()),
    )
    event_note(worker, "restart", f"by {actor.username}")
    audit_record(actor, "worker.restarted", f"{worker.run.slug}/{worker.name}")
    _look_soon(worker)


@transaction.atomic
def managed_worker_stop(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to stop; it is asked to leave at the next look."""
    ManagedWorker.objects.filter(pk=worker.pk).update(desired=ManagedWorker.Desired.STOPPED)
    event_note(worker, "unwanted", f"by {actor.username}")
    audit_record(actor, "worker.unwanted", f"{worker.run.slug}/{worker.name}")
    _look_soon(worker)


def workers_stop_all() -> None:
    """Stop every process of this node for now; what is wanted stays, so the next start resumes.

    Coordinators first, while trainers live: they take a last checkpoint from them.
    """
    evaluations_stop()
    workers = ManagedWorker.objects.filter(node=settings.NODE).exclude(state=WorkerState.STOPPED)
    workers = workers.select_related("run")
    coordinator = ManagedWorker.Kind.COORDINATOR
    _stop_together(list(workers.filter(kind=coordinator)))
    _stop_together(list(workers.exclude(kind=coordinator)))


def _stop_together(workers: list[ManagedWorker]) -> None:
    for worker in workers:
        if is_alive(worker.pid, worker.process_started_at):
            state_note(worker, WorkerState.STOPPING, "site stops")
        terminate(worker.pid, worker.process_started_at)
    asked_at = time.monotonic()
    for worker in workers:
        left = _wait_for(worker, asked_at + stop_seconds(worker) - time.monotonic())
        remains_kill(process_mark(worker))
        text = "site stops" if left else "killed: it did not leave in time"
        state_note(worker, WorkerState.STOPPED, text)


def _wait_for(worker: ManagedWorker, seconds: float) -> bool:
    return wait_until(lambda: not is_alive(worker.pid, worker.process_started_at), seconds)


def log_ask(worker: ManagedWorker) -> None:
    """Ask another node for the end of a log; its answer is there at the next look."""
    from web.workers.tasks import managed_worker_log_task  # tasks import this module

    if worker.node != settings.NODE:
        _node_send(worker.node, managed_worker_log_task, worker.pk, expires=_LOG_EXPIRES_SECONDS)


def _until(hours: float | None, now: datetime) -> datetime | None:
    return None if hours is None else now + timedelta(hours=hours)


def _look_soon(worker: ManagedWorker) -> None:
    """Tell the node on commit; without a broker, its next look does it.

    A node that is away looks by itself when it comes back: nothing may pile up in its queue.
    """

    def send() -> None:
        from web.workers.tasks import managed_worker_reconcile_task  # tasks import this module

        _node_send(worker.node, managed_worker_reconcile_task, worker.pk)

    transaction.on_commit(send)


def _node_send(name: str, task: Any, worker_id: int, *, expires: float | None = None) -> None:
    node = WorkerNode.objects.filter(name=name).first()
    if node is not None and is_away(node, timezone.now()):
        return
    try:
        task.apply_async((worker_id,), queue=node_queue(name), expires=expires)
    except OperationalError:
        logger.warning("no broker: node %s does not hear of worker %d now", name, worker_id)
