"""Processes that the platform runs for a run: launched, stopped, looked into."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.desk import worker_row, worker_rows
from web.control.forms import LaunchForm
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import Right
from web.workers.models import ManagedWorker
from web.workers.selectors import managed_worker_log_tail
from web.workers.services import (
    managed_worker_create,
    managed_worker_start,
    managed_worker_stop,
)

LOG_LINES = 60
MAX_TRAINERS = 32


@run_desk
@require_safe
def workers_fragment(request: DeskRequest, run: Run) -> HttpResponse:
    """The table alone."""
    context = {"run": run, "workers": worker_rows(run)}
    return render(request, "control/run_workers_fragment.html", context)


@run_desk_for(Right.WORKERS)
@require_POST
def workers_launch(request: DeskRequest, run: Run) -> HttpResponse:
    """Launch trainers, and a coordinator if the run has none."""
    form = LaunchForm(request.POST)
    if not form.is_valid():
        messages.error(request, "One to eight trainers can be launched at a time.")
        return redirect("control:run", run.slug)
    names = trainers_launch(request, run, form.cleaned_data["count"])
    messages.success(request, f"Asked for {', '.join(names)}. Each says below how far it is.")
    return redirect("control:run", run.slug)


@run_desk
@require_safe
def worker_page(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """One process: its events and the end of its log."""
    return render(request, "control/worker.html", worker_context(run, name))


@run_desk
@require_safe
def worker_fragment(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """What changes on the page of one process."""
    return render(request, "control/worker_fragment.html", worker_context(run, name))


@run_desk_for(Right.WORKERS)
@require_POST
def worker_start(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """Want it to run."""
    managed_worker_start(request.user, worker_get(run, name))
    messages.success(request, f"{name} starts.")
    return redirect("control:worker", run.slug, name)


@run_desk_for(Right.WORKERS)
@require_POST
def worker_stop(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """Want it to leave."""
    managed_worker_stop(request.user, worker_get(run, name))
    messages.success(request, f"{name} finishes its micro-step and leaves.")
    return redirect("control:worker", run.slug, name)


def worker_get(run: Run, name: str) -> ManagedWorker:
    """Return one of the run's managed workers."""
    worker = run.managed_workers.select_related("run").filter(name=name).first()
    if worker is None:
        raise AppError(ErrorCode.NOT_FOUND, "This run has no such managed worker.")
    return worker


def worker_context(run: Run, name: str) -> dict[str, object]:
    """Return what the page of one process shows."""
    worker = worker_get(run, name)
    return {
        "run": run,
        **worker_row(worker),
        "log": managed_worker_log_tail(worker, LOG_LINES),
        "events": list(worker.events.all()[:30]),
    }


@transaction.atomic
def trainers_launch(request: DeskRequest, run: Run, count: int) -> list[str]:
    """Return the names of the managed workers that were asked for."""
    Run.objects.select_for_update().get(pk=run.pk)  # two clicks must not choose the same names
    workers = list(run.managed_workers.values_list("name", "kind"))
    taken = {name for name, _ in workers}
    if sum(kind == ManagedWorker.Kind.TRAINER for _, kind in workers) + count > MAX_TRAINERS:
        raise AppError(ErrorCode.BODY_INVALID, f"A run has at most {MAX_TRAINERS} trainers here.")
    names: list[str] = []
    if all(kind != ManagedWorker.Kind.COORDINATOR for _, kind in workers):
        managed_worker_create(request.user, run, ManagedWorker.Kind.COORDINATOR, "coordinator")
        names.append("coordinator")
    free = (f"trainer-{n}" for n in range(1, 2 * MAX_TRAINERS + 2))
    for name in [name for name in free if name not in taken][:count]:
        managed_worker_create(request.user, run, ManagedWorker.Kind.TRAINER, name)
        names.append(name)
    return names
