"""Evaluations of checkpoints: asked for, run one at a time on the node that keeps them, stored."""

import contextlib
import logging
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.models import Checkpoint, Run
from web.runs.selectors import config_newest
from web.runs.signals import run_changed
from web.workers.evaluation_loss import LIMIT, State, evaluations_lose
from web.workers.evaluation_outcome import Outcome, outcome_read
from web.workers.evaluation_process import (
    CheckpointGone,
    evaluation_folder,
    evaluation_launch,
    evaluation_mark,
)
from web.workers.models import Evaluation, EvaluationJob, ManagedWorker, WorkerNode, node_here
from web.workers.nodes import is_away, node_queue
from web.workers.processes import is_alive, process_started_at, remains_kill

logger = logging.getLogger(__name__)
_LAUNCH = timedelta(minutes=1)
"""A claimed start without a process after this was interrupted."""
_OUTPUT_BYTES = 1_000_000
_OVERTAKEN = "A newer checkpoint came first."


def checkpoint_node(run: Run) -> str:
    """Return the node that has the run's checkpoints: its coordinator's, or the site's own."""
    coordinators = run.managed_workers.filter(kind=ManagedWorker.Kind.COORDINATOR)
    return coordinators.values_list("node", flat=True).first() or node_here()


@transaction.atomic
def evaluation_request(actor: User | None, checkpoint: Checkpoint) -> EvaluationJob:
    """Ask for a checkpoint's evaluation, again if there was one; None: the config asks.

    Raises:
        AppError: BODY_INVALID; it is being evaluated right now.
    """
    run = checkpoint.run
    about = {
        "config_version": checkpoint.config_version,
        "state": State.WAITING,
        "asked_at": timezone.now(),
        "asked_by": actor,
        "node": checkpoint_node(run),
        "pid": None,
        "process_started_at": None,
        "started_at": None,
        "reason": "",
    }
    key = {"run": run, "lineage": checkpoint.lineage, "epoch": checkpoint.epoch}
    job = EvaluationJob.objects.select_for_update().filter(**key).first()
    if job is None:
        job = _create(key | about)
    elif job.state == State.RUNNING:
        raise AppError(ErrorCode.BODY_INVALID, "This checkpoint is being evaluated right now.")
    else:
        EvaluationJob.objects.filter(pk=job.pk).update(**about)
        job.refresh_from_db()
    audit_record(actor, "evaluation.requested", run.slug, {"epoch": checkpoint.epoch})
    transaction.on_commit(lambda: _look_soon(job.node))
    return job


def _create(fields: dict[str, Any]) -> EvaluationJob:
    try:
        with transaction.atomic():
            return EvaluationJob.objects.create(**fields)
    except IntegrityError as error:
        text = "Somebody else asked for this evaluation at the same moment."
        raise AppError(ErrorCode.BODY_INVALID, text) from error


def evaluation_automatic(run: Run) -> None:
    """Ask for the newest checkpoint's evaluation if the run's config wants that.

    Older ones that still wait are skipped: a slow machine never falls behind for good.
    """
    config = config_newest(run)
    checkpoint = run.checkpoints.order_by("-saved_at", "-pk").first()
    if config is None or checkpoint is None:
        return
    if not (config.body.get("evaluation") or {}).get("automatic"):
        return
    waiting = run.evaluation_jobs.filter(state=State.WAITING, asked_by=None)
    waiting.update(state=State.SKIPPED, reason=_OVERTAKEN)
    with contextlib.suppress(AppError):  # it is evaluated already: the checkpoint is kept anyway
        evaluation_request(None, checkpoint)


def evaluations_look(now: datetime) -> None:
    """See whether this node's evaluation has ended, or start the next one. Never waits long.

    By the way, what vanished with other nodes is given up.
    """
    evaluations_lose(now)
    running = EvaluationJob.objects.filter(node=settings.NODE, state=State.RUNNING)
    for job in running.select_related("run"):
        _running_look(job, now)
    claimed = _claim(now)
    if claimed is not None:
        _start(claimed)


def evaluations_stop() -> None:
    """End this node's evaluations with the site; they begin again with it."""
    running = EvaluationJob.objects.filter(node=settings.NODE, state=State.RUNNING)
    for job in running.select_related("run"):
        remains_kill(evaluation_mark(job))
        EvaluationJob.objects.filter(pk=job.pk).update(
            state=State.WAITING, pid=None, process_started_at=None, started_at=None
        )


def _running_look(job: EvaluationJob, now: datetime) -> None:
    since = job.started_at or now
    if job.pid is None:
        if now - since > _LAUNCH:
            _finish(job, Outcome(reason="Its start was interrupted."), now)
    elif not is_alive(job.pid, job.process_started_at):
        folder = evaluation_folder(job)
        output, errors = _text(folder / "result.json"), _text(folder / "errors.log")
        _finish(job, outcome_read(output, errors), now)
    elif now - since > LIMIT:
        minutes = LIMIT.total_seconds() / 60
        _finish(job, Outcome(reason=f"It took more than {minutes:.0f} minutes."), now)


@transaction.atomic
def _claim(now: datetime) -> EvaluationJob | None:
    """Return the job to start now; None when one runs, or none waits. People's come first."""
    WorkerNode.objects.select_for_update().filter(name=settings.NODE).first()
    mine = EvaluationJob.objects.filter(node=settings.NODE)
    if mine.filter(state=State.RUNNING).exists():
        return None
    waiting = mine.filter(state=State.WAITING).select_related("run")
    job = waiting.exclude(asked_by=None).order_by("asked_at").first()
    job = job or waiting.order_by("asked_at").first()
    if job is None:
        return None
    moved = mine.filter(pk=job.pk, state=State.WAITING).update(
        state=State.RUNNING, started_at=now, pid=None, process_started_at=None
    )
    job.refresh_from_db()
    return job if moved else None


def _start(job: EvaluationJob) -> None:
    try:
        pid = evaluation_launch(job)
    except CheckpointGone:
        _gone(job)
        return
    except (OSError, ValueError) as error:
        _finish(job, Outcome(reason=f"It could not be started: {error}"), timezone.now())
        return
    started_at = process_started_at(pid)
    EvaluationJob.objects.filter(pk=job.pk).update(pid=pid, process_started_at=started_at)
    logger.info("run %s: evaluation of epoch %d is process %d", job.run.slug, job.epoch, pid)


def _gone(job: EvaluationJob) -> None:
    """Tell who asked; what the config asked for is skipped: newer checkpoints took its place."""
    if job.asked_by_id is None:
        EvaluationJob.objects.filter(pk=job.pk, state=State.RUNNING).update(
            state=State.SKIPPED, started_at=None, reason=_OVERTAKEN
        )
        shutil.rmtree(evaluation_folder(job), ignore_errors=True)
        return
    text = "It could not be started: this checkpoint's files are no longer kept."
    _finish(job, Outcome(reason=text), timezone.now())


def _finish(job: EvaluationJob, outcome: Outcome, now: datetime) -> None:
    """Store what came out, once, and clean up."""
    remains_kill(evaluation_mark(job))
    reason = outcome.reason.replace(str(settings.DATA_DIR), "…")[:500]
    with transaction.atomic():
        moved = EvaluationJob.objects.filter(pk=job.pk, state=State.RUNNING).update(
            state=State.FAILED if reason else State.DONE,
            finished_at=now,
            seconds=(now - (job.started_at or now)).total_seconds(),
            pid=None,
            process_started_at=None,
            reason=reason,
            **({} if reason else _kept(outcome)),
        )
        if not moved:
            return
        if not reason:
            job.results.all().delete()
            Evaluation.objects.bulk_create(
                Evaluation(job=job, metric=name, value=value)
                for name, value in outcome.metrics.items()
            )
        code = "evaluation.failed" if reason else "evaluation.finished"
        if not reason:
            figures = ", ".join(f"{name} {value:.3g}" for name, value in outcome.metrics.items())
            text = f"The state of epoch {job.epoch} was evaluated: {figures}"
            run_changed.send(Run, run=job.run, kind=code, text=text)
        data = {"epoch": job.epoch, "reason": reason} if reason else {"epoch": job.epoch}
        audit_record(None, code, job.run.slug, data)
    shutil.rmtree(evaluation_folder(job), ignore_errors=True)


def _kept(outcome: Outcome) -> Mapping[str, Any]:
    return {"num_samples": outcome.num_samples, "examples": outcome.examples}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_OUTPUT_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _look_soon(name: str) -> None:
    from web.workers.tasks import evaluations_look_task  # tasks import this module

    node = WorkerNode.objects.filter(name=name).first()
    if node is None or is_away(node, timezone.now()):
        return
    try:
        evaluations_look_task.apply_async((), queue=node_queue(name))
    except OperationalError:
        logger.warning("no broker: node %s evaluates at its next look", name)
