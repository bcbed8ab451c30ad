"""What people want of managed workers, and how all of them are stopped with the site."""

import logging
import time

from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.protocol.states import WorkerState
from web.accounts.models import User
from web.core.audit import audit_record
from web.runs.models import Run
from web.workers.journal import event_note, state_note
from web.workers.launcher import process_mark
from web.workers.models import ManagedWorker
from web.workers.processes import is_alive, remains_kill, terminate, wait_until
from web.workers.reconcile import managed_worker_reconcile, managed_workers_reconcile
from web.workers.selectors import stop_seconds

__all__ = [
    "managed_worker_create",
    "managed_worker_reconcile",
    "managed_worker_start",
    "managed_worker_stop",
    "managed_workers_reconcile",
    "workers_stop_all",
]

logger = logging.getLogger(__name__)


@transaction.atomic
def managed_worker_create(actor: User, run: Run, kind: str, name: str) -> ManagedWorker:
    """Return a new managed worker that should run; celery starts it."""
    worker = ManagedWorker.objects.create(run=run, kind=ManagedWorker.Kind(kind), name=name)
    event_note(worker, "requested", f"by {actor.username}")
    audit_record(actor, "worker.requested", f"{run.slug}/{name}", {"kind": kind})
    _look_soon(worker)
    return worker


@transaction.atomic
def managed_worker_start(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to run; earlier failures are forgotten."""
    ManagedWorker.objects.filter(pk=worker.pk).update(
        desired=ManagedWorker.Desired.RUNNING, num_restarts=0, start_after=None
    )
    ManagedWorker.objects.filter(pk=worker.pk, state=WorkerState.FAILED).update(
        state=WorkerState.REQUESTED, state_changed_at=timezone.now()
    )
    event_note(worker, "wanted", f"by {actor.username}")
    audit_record(actor, "worker.wanted", f"{worker.run.slug}/{worker.name}")
    _look_soon(worker)


@transaction.atomic
def managed_worker_stop(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to stop; it is asked to leave at the next look."""
    ManagedWorker.objects.filter(pk=worker.pk).update(desired=ManagedWorker.Desired.STOPPED)
    event_note(worker, "unwanted", f"by {actor.username}")
    audit_record(actor, "worker.unwanted", f"{worker.run.slug}/{worker.name}")
    _look_soon(worker)


def workers_stop_all() -> None:
    """Stop every process for now; what is wanted stays, so the next start resumes.

    Coordinators first, while trainers live: they take a last checkpoint from them.
    """
    for kind in (ManagedWorker.Kind.COORDINATOR, ManagedWorker.Kind.TRAINER):
        workers = ManagedWorker.objects.filter(kind=kind).exclude(state=WorkerState.STOPPED)
        _stop_together(list(workers.select_related("run")))


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


def _look_soon(worker: ManagedWorker) -> None:
    """Tell celery on commit; without a broker, beat's next round does it."""

    def send() -> None:
        from web.workers.tasks import managed_worker_reconcile_task  # tasks import this module

        try:
            managed_worker_reconcile_task.delay(worker.pk)
        except OperationalError:
            logger.warning(
                "run %s: no broker, %s waits for the next round", worker.run.slug, worker.name
            )

    transaction.on_commit(send)
