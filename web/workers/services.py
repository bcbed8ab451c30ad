"""Writes of managed workers: wanted or not, started, stopped, looked after."""

import logging
import socket
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.protocol.states import WorkerState
from web.accounts.models import ApiToken, User
from web.accounts.services import service_user_get, token_issue
from web.core.audit import audit_record
from web.runs.models import Run
from web.workers.decide import Action, back_off_seconds, decide
from web.workers.launcher import worker_launch
from web.workers.models import ManagedWorker, WorkerEvent
from web.workers.processes import TERM_SECONDS, process_started_at, session_end, terminate
from web.workers.selectors import managed_worker_log_tail, service_name, worker_facts

logger = logging.getLogger(__name__)
COORDINATOR_SECONDS = 30.0
"""A coordinator that leaves saves a last checkpoint and reports what it knows."""
_STARTABLE = (WorkerState.REQUESTED, WorkerState.STOPPED, WorkerState.BACKING_OFF)
_KEPT_EVENTS = 200


@transaction.atomic
def managed_worker_create(actor: User, run: Run, kind: str, name: str) -> ManagedWorker:
    """Return a new managed worker that should run; celery starts it."""
    worker = ManagedWorker.objects.create(run=run, kind=ManagedWorker.Kind(kind), name=name)
    _event(worker, "requested", f"by {actor.username}")
    audit_record(actor, "worker.requested", f"{run.slug}/{name}", {"kind": kind})
    _start_soon(worker)
    return worker


@transaction.atomic
def managed_worker_start(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to run; earlier failures are forgotten."""
    worker.desired, worker.num_restarts, worker.start_after = "running", 0, None
    if worker.state in (WorkerState.FAILED, WorkerState.STOPPED):
        worker.state, worker.state_changed_at = WorkerState.REQUESTED, timezone.now()
    worker.save()
    _event(worker, "wanted", f"by {actor.username}")
    audit_record(actor, "worker.wanted", f"{worker.run.slug}/{worker.name}")
    _start_soon(worker)


@transaction.atomic
def managed_worker_stop(actor: User, worker: ManagedWorker) -> None:
    """Want a managed worker to stop; it leaves well at the next reconciliation."""
    worker.desired = ManagedWorker.Desired.STOPPED
    worker.save(update_fields=("desired",))
    _event(worker, "unwanted", f"by {actor.username}")
    audit_record(actor, "worker.unwanted", f"{worker.run.slug}/{worker.name}")
    _start_soon(worker)


def managed_worker_reconcile(worker: ManagedWorker) -> Action:
    """Compare what is wanted with what is, and do the next thing. Safe to repeat."""
    now = timezone.now()
    action = decide(worker_facts(worker, now))
    if action is Action.START:
        _start(worker, now)
    elif action is Action.STOP:
        _stop(worker)
    elif action is Action.KILL:
        session_end(worker.pid, worker.process_started_at, 0)
        _back_off(worker, now, "it gave no sign of life")
    elif action is Action.BACK_OFF:
        session_end(worker.pid, worker.process_started_at, 0)  # forks of a killed leader
        _back_off(worker, now, "it ended")
    elif action is Action.GIVE_UP:
        session_end(worker.pid, worker.process_started_at, 0)
        _note(
            worker, WorkerState.FAILED, "gave up after too many failures", last_error=_tail(worker)
        )
    elif action is Action.NOTE_RUNNING:
        _note(worker, WorkerState.RUNNING, "it gives signs of life")
    elif action is Action.NOTE_TRAINING:
        _note(worker, WorkerState.TRAINING, "seen in the swarm", last_error="")
    elif action is Action.NOTE_STOPPED:
        _note(worker, WorkerState.STOPPED, "stopped", pid=None, process_started_at=None)
    elif action is Action.FORGIVE:
        ManagedWorker.objects.filter(pk=worker.pk).update(num_restarts=0)
    return action


def managed_workers_reconcile() -> None:
    """Look after all managed workers; one that fails does not keep the others waiting."""
    for worker in ManagedWorker.objects.select_related("run").order_by("kind", "id"):
        try:
            managed_worker_reconcile(worker)
        except OSError:
            logger.exception("managed worker %s: not reconciled", worker)


def workers_stop_all() -> None:
    """Stop every process for now; what is wanted stays, so the next start resumes.

    Coordinators first, while trainers live: they take a last checkpoint from them.
    """
    for kind, seconds in (("coordinator", COORDINATOR_SECONDS), ("trainer", TERM_SECONDS)):
        workers = list(ManagedWorker.objects.filter(kind=kind, pid__isnull=False))
        for worker in workers:
            terminate(worker.pid, worker.process_started_at)
        for worker in workers:
            session_end(worker.pid, worker.process_started_at, seconds)
            _note(worker, WorkerState.STOPPED, "site stops", pid=None, process_started_at=None)


def _start(worker: ManagedWorker, now: datetime) -> None:
    """Launch the process, unless another task has claimed the start."""
    claimed = ManagedWorker.objects.filter(pk=worker.pk, state__in=_STARTABLE).update(
        state=WorkerState.STARTING, state_changed_at=now, pid=None, process_started_at=None
    )
    if not claimed:
        return
    if worker.kind == ManagedWorker.Kind.COORDINATOR and not worker.port:
        worker.port = _free_port()
    try:
        pid = worker_launch(worker, _token(worker))
    except OSError as error:
        _back_off(worker, now, f"it could not be started: {error}")
        return
    ManagedWorker.objects.filter(pk=worker.pk).update(
        pid=pid, process_started_at=process_started_at(pid), port=worker.port
    )
    _event(worker, "started", f"process {pid}")
    logger.info("run %s: started %s as process %d", worker.run.slug, worker.name, pid)


def _stop(worker: ManagedWorker) -> None:
    _note(worker, WorkerState.STOPPING, "asked to leave")
    terminate(worker.pid, worker.process_started_at)
    seconds = COORDINATOR_SECONDS if worker.kind == "coordinator" else TERM_SECONDS
    has_left = session_end(worker.pid, worker.process_started_at, seconds)
    text = "left" if has_left else "killed: it did not leave in time"
    _note(worker, WorkerState.STOPPED, text, pid=None, process_started_at=None)


def _back_off(worker: ManagedWorker, now: datetime, why: str) -> None:
    wait = back_off_seconds(worker.num_restarts)
    _note(
        worker,
        WorkerState.BACKING_OFF,
        f"{why}; next start in {wait:.0f} s",
        num_restarts=worker.num_restarts + 1,
        start_after=now + timedelta(seconds=wait),
        last_error=_tail(worker),
    )


def _token(worker: ManagedWorker) -> str:
    """Return a fresh token; the process's older ones end, so a leaked one is short-lived."""
    user = service_user_get(service_name(worker.run))
    name = f"managed {worker.name}"
    is_trainer = worker.kind == ManagedWorker.Kind.TRAINER
    with transaction.atomic():
        old = ApiToken.objects.filter(
            user=user, name=name, run_slug=worker.run.slug, revoked_at=None
        )
        old.update(revoked_at=timezone.now())
        scope = ApiToken.Scope.DEVICE if is_trainer else ApiToken.Scope.COORDINATOR
        return token_issue(user, scope, name=name, run_slug=worker.run.slug)[1]


def _note(worker: ManagedWorker, state: WorkerState, text: str, **fields: object) -> None:
    changed = (
        ManagedWorker.objects.filter(pk=worker.pk)
        .exclude(state=state)
        .update(state=state, state_changed_at=timezone.now(), **fields)
    )
    if changed:
        _event(worker, state, text)
        logger.info("run %s: %s is %s: %s", worker.run.slug, worker.name, state, text)


def _event(worker: ManagedWorker, kind: str, text: str) -> None:
    WorkerEvent.objects.create(worker=worker, kind=kind, text=text[:500])
    old = worker.events.order_by("-id").values_list("pk", flat=True)[_KEPT_EVENTS:]
    WorkerEvent.objects.filter(pk__in=list(old)).delete()


def _tail(worker: ManagedWorker) -> str:
    return "\n".join(managed_worker_log_tail(worker, 12))[-2000:]


def _start_soon(worker: ManagedWorker) -> None:
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


def _free_port() -> int:
    """Return a port for a coordinator; it is kept, since peers remember the address."""
    taken = set(ManagedWorker.objects.exclude(port=None).values_list("port", flat=True))
    first = int(settings.SWARM_PORT)
    if first:
        return next(port for port in range(first, 65536) if port not in taken)
    host = settings.SWARM_BIND if settings.SWARM_BIND not in ("", "localhost") else "127.0.0.1"
    while True:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
