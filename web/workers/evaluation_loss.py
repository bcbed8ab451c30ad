"""Evaluations that nobody will finish: their node vanished, or was forgotten."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from web.core.audit import audit_record
from web.workers.models import EvaluationJob, WorkerNode
from web.workers.nodes import AWAY

LIMIT = timedelta(minutes=30)
"""Of an evaluation; on a node that is away it is lost after so long."""
State = EvaluationJob.State
_OPEN = (State.WAITING, State.RUNNING)


@transaction.atomic
def evaluations_lose(now: datetime) -> int:
    """Fail what waits or runs for long on other nodes that are away or gone; return how many."""
    present = WorkerNode.objects.filter(left_at=None, seen_at__gte=now - AWAY).values("name")
    old = now - LIMIT
    late = Q(state=State.RUNNING, started_at__lt=old) | Q(state=State.WAITING, asked_at__lt=old)
    vanished = late & ~Q(node__in=present) & ~Q(node=settings.NODE)
    if not EvaluationJob.objects.filter(vanished).exists():
        return 0  # as nearly always: no lock is taken
    lost = jobs_fail(vanished, now)
    jobs_record(lost)
    return len(lost)


def jobs_fail(which: Q, now: datetime) -> list[EvaluationJob]:
    """Fail those of the open jobs; return them, for :func:`jobs_record` at the end."""
    rows = EvaluationJob.objects.select_for_update(of=("self",), skip_locked=True)
    jobs = list(rows.select_related("run").filter(which, state__in=_OPEN))
    for job in jobs:
        told = "while it ran there" if job.state == State.RUNNING else "before it ran there"
        job.reason = f"Node {job.node} vanished {told}. Ask again when the checkpoint's node is up."
        job.state, job.finished_at = State.FAILED, now
        job.pid = job.process_started_at = None
    fields = ("reason", "state", "finished_at", "pid", "process_started_at")
    EvaluationJob.objects.bulk_update(jobs, fields)
    return jobs


def jobs_record(jobs: list[EvaluationJob]) -> None:
    """Write down that they failed; after all other writes of the transaction."""
    for job in jobs:
        data = {"epoch": job.epoch, "reason": job.reason}
        audit_record(None, "evaluation.failed", job.run.slug, data)
