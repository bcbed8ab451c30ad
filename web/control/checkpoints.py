"""Saved states of a run: what each can do, where it is, and the way back to it."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.protocol.errors import ErrorCode
from training.protocol.names import API_PREFIX
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.forms import ReasonForm
from web.core.errors import AppError
from web.monitoring.selectors import live_state
from web.runs.models import Checkpoint, Run
from web.runs.roles import Right
from web.runs.saved_files import saved_states
from web.runs.selectors import config_newest, lineage_path, run_is_organised_by
from web.runs.services import run_rewind
from web.workers.evaluation_selectors import evaluation_jobs, figures_text, jobs_by_checkpoint
from web.workers.evaluations import checkpoint_node, evaluation_request
from web.workers.models import EvaluationJob, node_here
from web.workers.node_selectors import nodes_by_name
from web.workers.nodes import is_away

_SHOWN = 200


@run_desk
@require_safe
def checkpoints_page(request: DeskRequest, run: Run) -> HttpResponse:
    """The list, with evaluations and what is kept."""
    return render(request, "control/checkpoints.html", _context(request, run))


@run_desk
@require_safe
def checkpoints_fragment(request: DeskRequest, run: Run) -> HttpResponse:
    """The table alone."""
    return render(request, "control/checkpoints_fragment.html", _context(request, run))


@run_desk_for(Right.WORKERS)
@require_POST
def checkpoint_evaluate(request: DeskRequest, run: Run, lineage: int, epoch: int) -> HttpResponse:
    """Ask for an evaluation now."""
    job = evaluation_request(request.user, _checkpoint(run, lineage, epoch))
    messages.success(request, f"Epoch {epoch} is evaluated on node {job.node}, one at a time.")
    return redirect("control:checkpoints", run.slug)


@run_desk_for(Right.ORGANISE)
@require_http_methods(["GET", "HEAD", "POST"])
def checkpoint_return(request: DeskRequest, run: Run, lineage: int, epoch: int) -> HttpResponse:
    """Say what going back to a saved state means; then do it. Nobody's work is undone by it."""
    found = _checkpoint(run, lineage, epoch)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            version = run_rewind(request.user, run, found, reason=form.cleaned_data["reason"])
        except AppError as error:
            if error.code != ErrorCode.BODY_INVALID:
                raise
            form.add_error(None, error.detail)
        else:
            words = (
                f"Lineage {version.lineage} begins at epoch {epoch}: every peer loads its state."
            )
            messages.success(request, words)
            return redirect("control:checkpoints", run.slug)
    state = live_state(run)
    lost = run.checkpoints.filter(epoch__gt=epoch, lineage__in=dict(lineage_path(run))).count()
    context = {
        "run": run,
        "checkpoint": found,
        "form": form,
        "num_peers": state["num_peers"],
        "num_epochs": max(0, state["epoch"] - epoch),
        "num_states": lost,
    }
    return render(request, "control/checkpoint_return.html", context)


def _checkpoint(run: Run, lineage: int, epoch: int) -> Checkpoint:
    found = run.checkpoints.select_related("run").filter(lineage=lineage, epoch=epoch).first()
    if found is None:
        raise AppError(ErrorCode.NOT_FOUND, "This checkpoint is not kept.")
    return found


def _context(request: DeskRequest, run: Run) -> dict[str, Any]:
    node = checkpoint_node(run)
    config = config_newest(run)
    body = config.body if config else {}
    jobs = jobs_by_checkpoint(evaluation_jobs(run)[:_SHOWN])
    path = dict(lineage_path(run))
    row = nodes_by_name().get(node)
    return {
        "run": run,
        "node": node,
        "is_node_away": row is not None and is_away(row, timezone.now()),
        "is_here": node == node_here(),
        "is_organiser": run_is_organised_by(request.user, run),
        "checkpoint": body.get("checkpoint"),
        "evaluation": body.get("evaluation"),
        "rows": [_row(c, jobs, path) for c in run.checkpoints.all()[:_SHOWN]],
    }


def _row(
    checkpoint: Checkpoint,
    jobs: dict[tuple[int, int], EvaluationJob],
    path: dict[int, int | None],
) -> dict[str, Any]:
    job = jobs.get((checkpoint.lineage, checkpoint.epoch))
    end = path.get(checkpoint.lineage, -1)
    folder = f"{API_PREFIX}/runs/{checkpoint.run.slug}/checkpoints/{checkpoint.epoch}"
    saved_at: datetime = checkpoint.saved_at
    saved = saved_states(checkpoint.run.slug, [checkpoint])[0]
    return {
        "checkpoint": checkpoint,
        "is_here": saved.is_here,
        "saved_at": saved_at,
        "size": sum(int(file["size"]) for file in checkpoint.files),
        "files": [
            file | {"url": f"{folder}/{file['name']}?lineage={checkpoint.lineage}"}
            for file in saved.files
        ],
        "job": job,
        "figures": figures_text(job) if job and job.state == job.State.DONE else "",
        "is_open": job is not None and job.state in (job.State.WAITING, job.State.RUNNING),
        "may_return": end is None or checkpoint.epoch <= end,
    }
