"""Taking managed workers and nodes off the lists, and ending what is left of them."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import WorkerState
from web.accounts.models import ApiToken, User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.workers.evaluation_loss import State, jobs_fail, jobs_record
from web.workers.evaluation_process import evaluation_mark
from web.workers.launcher import process_mark
from web.workers.models import EvaluationJob, ManagedWorker, WorkerNode
from web.workers.nodes import installation_id, is_away
from web.workers.processes import marks_present, remains_kill
from web.workers.selectors import service_name, token_name

logger = logging.getLogger(__name__)
_ENDED = frozenset({WorkerState.STOPPED, WorkerState.FAILED, WorkerState.REQUESTED})


def is_removable(worker: ManagedWorker, node: WorkerNode | None, now: datetime) -> bool:
    """Whether nothing runs under this name, or its node cannot be asked any more."""
    is_gone = node is not None and is_away(node, now)
    is_wanted = worker.desired != ManagedWorker.Desired.STOPPED
    has_ended = worker.state in _ENDED and worker.pid is None
    return is_gone or (has_ended and (not is_wanted or worker.state == WorkerState.FAILED))


@transaction.atomic
def managed_worker_remove(actor: User, worker: ManagedWorker) -> None:
    """Take a worker off the list with its history; its folder stays on its node.

    Its token ends, and a node that comes back ends what still runs there: a coordinator that was
    replaced does not report beside the new one.

    Raises:
        AppError: BODY_INVALID; it has not stopped.
    """
    node = WorkerNode.objects.select_for_update().filter(name=worker.node).first()
    row = ManagedWorker.objects.select_for_update().select_related("run").get(pk=worker.pk)
    now = timezone.now()
    if not is_removable(row, node, now):
        raise AppError(ErrorCode.BODY_INVALID, f"{row.name} has not stopped yet: stop it first.")
    _tokens_end([row], now)
    data = {"kind": row.kind, "node": row.node, "state": row.state}
    target = f"{row.run.slug}/{row.name}"
    row.delete()
    audit_record(actor, "worker.removed", target, data)


@transaction.atomic
def node_forget(actor: User, node: WorkerNode, now: datetime) -> None:
    """Take a node that is gone for good out of the lists, with its managed workers.

    Evaluations that it was to make have failed.

    Raises:
        AppError: BODY_INVALID; it is alive.
    """
    row = WorkerNode.objects.select_for_update().get(pk=node.pk)
    if not is_away(row, now):
        raise AppError(ErrorCode.BODY_INVALID, f"Node {row.name} is alive: stop it there first.")
    workers = list(ManagedWorker.objects.filter(node=row.name).select_related("run"))
    names = [process_mark(worker) for worker in workers]
    _tokens_end(workers, now)
    lost = jobs_fail(Q(node=row.name), now)
    ManagedWorker.objects.filter(node=row.name).delete()
    row.delete()
    jobs_record(lost)
    audit_record(actor, "node.forgotten", f"node/{row.name}", {"workers": names})


def strays_end() -> int:
    """End what runs here for workers and evaluations that were given up; return how many.

    What belongs to a node that shares this data folder, or was not heard yet, is left alone.
    """
    others = WorkerNode.objects.exclude(installation=installation_id()).values("name")
    mine = ManagedWorker.objects.exclude(node__in=others).select_related("run")
    jobs = EvaluationJob.objects.exclude(node__in=others).filter(state=State.RUNNING)
    known = {process_mark(worker) for worker in mine}
    known |= {evaluation_mark(job) for job in jobs.select_related("run")}
    strays = [mark for mark in marks_present() if "/" in mark and mark not in known]
    for mark in strays:
        remains_kill(mark)
        logger.warning("%s was given up while this node was away: it is ended", mark)
    return len(strays)


def _tokens_end(workers: list[ManagedWorker], now: datetime) -> None:
    """End the tokens that the processes of these workers were given."""
    for worker in workers:
        ApiToken.objects.filter(
            user__username=service_name(worker.run),
            name=token_name(worker),
            run_slug=worker.run.slug,
            revoked_at=None,
        ).update(revoked_at=now)
