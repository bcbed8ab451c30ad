"""One look at a managed worker: compare what is wanted with what is, and do the next thing.

Only the node of a managed worker looks after it: pids and files are that node's.

Looks may happen at the same time in several celery processes. Each change of state is a
conditional update from the state that was read, so only one of them acts.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from training.protocol.states import WorkerState
from web.accounts.models import ApiToken
from web.accounts.services import service_user_get, token_issue
from web.workers.decide import Action, back_off_seconds, decide
from web.workers.journal import event_note, state_note
from web.workers.launcher import children_reap, process_mark, worker_launch
from web.workers.logs import log_read
from web.workers.models import ManagedWorker
from web.workers.ports import coordinator_port
from web.workers.processes import (
    marked_leader,
    process_started_at,
    remains_kill,
    terminate,
)
from web.workers.selectors import service_name, token_name, worker_facts

logger = logging.getLogger(__name__)


def managed_worker_reconcile(worker: ManagedWorker) -> Action:
    """Do the one next thing about a managed worker. Never waits long; safe to repeat."""
    if worker.node != settings.NODE:
        return Action.NOTHING
    children_reap()
    now = timezone.now()
    _wishes_update(worker, now)
    action = decide(worker_facts(worker, now))
    if action is Action.START:
        _start(worker, now)
    elif action is Action.STOP:
        if state_note(worker, WorkerState.STOPPING, "asked to leave"):
            terminate(worker.pid, worker.process_started_at)
    elif action in (Action.END, Action.NOTE_STOPPED):
        _end(worker, action)
    elif action is Action.KILL:
        _back_off(worker, now, "it gave no sign of life")
    elif action is Action.KILL_GREEDY:
        _back_off(worker, now, f"it took more than {worker.memory_mb} MiB of memory")
    elif action is Action.BACK_OFF:
        _back_off(worker, now, "it ended")
    elif action is Action.GIVE_UP:
        _give_up(worker)
    elif action is Action.NOTE_RUNNING:
        state_note(worker, WorkerState.RUNNING, "it gives signs of life")
    elif action is Action.NOTE_TRAINING:
        state_note(worker, WorkerState.TRAINING, "seen in the swarm", last_error="")
    elif action is Action.FORGIVE:
        ManagedWorker.objects.filter(pk=worker.pk).update(num_restarts=0)
    return action


def managed_workers_reconcile() -> None:
    """Look after all managed workers of this node; one that fails keeps no other waiting."""
    workers = ManagedWorker.objects.filter(node=settings.NODE).select_related("run")
    for worker in workers.order_by("kind", "id"):
        try:
            managed_worker_reconcile(worker)
        except OSError:
            logger.exception("managed worker %s: not reconciled", worker)


def _wishes_update(worker: ManagedWorker, now: datetime) -> None:
    """End the wish when its hours are over; turn a finished stop of a restart into a start."""
    row = ManagedWorker.objects.filter(pk=worker.pk, desired=worker.desired)
    if worker.desired == ManagedWorker.Desired.RESTARTING and worker.state == WorkerState.STOPPED:
        row.update(desired=ManagedWorker.Desired.RUNNING)
        worker.desired = ManagedWorker.Desired.RUNNING
    if worker.desired == ManagedWorker.Desired.STOPPED or worker.wanted_until is None:
        return
    if worker.wanted_until <= now and row.update(desired=ManagedWorker.Desired.STOPPED):
        worker.desired = ManagedWorker.Desired.STOPPED
        event_note(worker, "time is over", f"it was wanted for {worker.hours:g} h")


def _start(worker: ManagedWorker, now: datetime) -> None:
    """Launch the process, unless another look has claimed the start."""
    if not state_note(worker, WorkerState.STARTING, "claimed"):
        return
    orphan = marked_leader(process_mark(worker))
    try:
        pid, text = (orphan.pid, "adopted") if orphan else (_launch(worker), "started")
    except OSError as error:
        _back_off(worker, now, f"it could not be started: {error}")
        return
    ManagedWorker.objects.filter(pk=worker.pk).update(
        pid=pid, process_started_at=process_started_at(pid), port=worker.port
    )
    event_note(worker, "started", f"{text} as process {pid}")
    logger.info("run %s: %s %s as process %d", worker.run.slug, worker.name, text, pid)


def _launch(worker: ManagedWorker) -> int:
    remains_kill(process_mark(worker))  # forks of a killed one would hold its port
    if worker.kind == ManagedWorker.Kind.COORDINATOR:
        worker.port = coordinator_port(worker)
    return worker_launch(worker, _token(worker))


def _end(worker: ManagedWorker, action: Action) -> None:
    remains_kill(process_mark(worker))
    is_late = action is Action.END
    text = "killed: it did not leave in time" if is_late else "stopped"
    state_note(worker, WorkerState.STOPPED, text)


def _back_off(worker: ManagedWorker, now: datetime, why: str) -> None:
    wait = back_off_seconds(worker.num_restarts)
    moved = state_note(
        worker,
        WorkerState.BACKING_OFF,
        f"{why}; next start in {wait:.0f} s",
        num_restarts=worker.num_restarts + 1,
        start_after=now + timedelta(seconds=wait),
        last_error=_tail(worker),
    )
    if moved:
        remains_kill(process_mark(worker))


def _give_up(worker: ManagedWorker) -> None:
    text = f"gave up after {worker.num_restarts} restarts"
    if state_note(worker, WorkerState.FAILED, text, last_error=_tail(worker)):
        remains_kill(process_mark(worker))


@transaction.atomic
def _token(worker: ManagedWorker) -> str:
    """Return a fresh token; the process's older ones end, so a leaked one is short-lived."""
    user = service_user_get(service_name(worker.run))
    name, slug = token_name(worker), worker.run.slug
    is_coordinator = worker.kind == ManagedWorker.Kind.COORDINATOR
    scope = ApiToken.Scope.COORDINATOR if is_coordinator else ApiToken.Scope.DEVICE
    old = ApiToken.objects.filter(user=user, name=name, run_slug=slug, revoked_at=None)
    old.update(revoked_at=timezone.now())
    return token_issue(user, scope, name=name, run_slug=slug)[1]


def _tail(worker: ManagedWorker) -> str:
    return "\n".join(log_read(worker, 12))[-2000:]
