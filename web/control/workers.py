"""Processes that the platform runs for a run: launched, stopped, looked into."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.desk import desk_context, worker_row, worker_rows
from web.control.launch_forms import LaunchForm
from web.control.refusals import form_refused
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import Right
from web.workers.launching import managed_workers_launch
from web.workers.logs import log_view
from web.workers.models import ManagedWorker
from web.workers.node_selectors import nodes_by_name, nodes_present
from web.workers.removal import managed_worker_remove
from web.workers.services import (
    log_ask,
    managed_worker_restart,
    managed_worker_start,
    managed_worker_stop,
)


@run_desk
@require_safe
def workers_fragment(request: DeskRequest, run: Run) -> HttpResponse:
    """The table alone."""
    context = {"run": run, "workers": worker_rows(run, nodes_by_name(), timezone.now())}
    return render(request, "control/run_workers_fragment.html", context)


@run_desk_for(Right.WORKERS)
@require_POST
def workers_launch(request: DeskRequest, run: Run) -> HttpResponse:
    """Launch trainers or auxiliary peers, and a coordinator if the run has none."""
    form = LaunchForm(request.POST, nodes=nodes_present(timezone.now()))
    try:
        if form.is_valid():
            names = managed_workers_launch(request.user, run, form.order())
            text = f"Asked for {', '.join(names)}. Each says below how far it is."
            messages.success(request, text)
            return redirect("control:run", run.slug)
    except AppError as error:
        form_refused(form, error)
    messages.error(request, form.problem())
    context = desk_context(request, run) | {"launch": form}
    return render(request, "control/run.html", context, status=422)


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
    return _asked(request, run, name, managed_worker_start, f"{name} starts.")


@run_desk_for(Right.WORKERS)
@require_POST
def worker_restart(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """Have it leave and start again."""
    text = f"{name} leaves and starts again."
    return _asked(request, run, name, managed_worker_restart, text)


@run_desk_for(Right.WORKERS)
@require_POST
def worker_stop(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """Want it to leave."""
    managed_worker_stop(request.user, worker_get(run, name))
    messages.success(request, f"{name} finishes its micro-step and leaves.")
    return redirect("control:worker", run.slug, name)


@run_desk_for(Right.WORKERS)
@require_POST
def worker_remove(request: DeskRequest, run: Run, name: str) -> HttpResponse:
    """Take it off the list."""
    managed_worker_remove(request.user, worker_get(run, name))
    messages.success(request, f"{name} is removed; its log stays on its node.")
    return redirect("control:run", run.slug)


def _asked(
    request: DeskRequest,
    run: Run,
    name: str,
    act: Callable[[User, ManagedWorker], None],
    done: str,
) -> HttpResponse:
    """Ask for a start; the worker's page says why there is no room for it."""
    try:
        act(request.user, worker_get(run, name))
    except AppError as error:
        if error.code not in (ErrorCode.BODY_INVALID, ErrorCode.RUN_OVER):
            raise
        messages.error(request, error.detail)
    else:
        messages.success(request, done)
    return redirect("control:worker", run.slug, name)


def worker_get(run: Run, name: str) -> ManagedWorker:
    """Return one of the run's managed workers."""
    worker = run.managed_workers.select_related("run").filter(name=name).first()
    if worker is None:
        raise AppError(ErrorCode.NOT_FOUND, "This run has no such managed worker.")
    return worker


def worker_context(run: Run, name: str) -> dict[str, object]:
    """Return what the page of one process shows; another node is asked for the log by the way."""
    worker = worker_get(run, name)
    log_ask(worker)
    return {
        "run": run,
        "worker": worker,
        "row": worker_row(worker, nodes_by_name(), timezone.now()),
        "log": log_view(worker),
        "events": list(worker.events.all()[:30]),
    }
