"""The desk of a run: how it goes, and the moves of its organiser."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.control.access import DeskRequest, desk_runs, run_desk, run_desk_for
from web.control.desk import desk_context, desk_rows
from web.control.forms import LaunchForm, MoveForm
from web.control.moves import move_effect, move_named
from web.core.errors import AppError
from web.monitoring.selectors import live_state
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.services import run_transition


@login_required
@require_safe
def runs_page(request: DeskRequest) -> HttpResponse:
    """The runs in which the visitor has a role; all of them for the staff."""
    runs = list(desk_runs(request.user))
    if not runs and not request.user.is_staff:
        raise AppError(ErrorCode.FORBIDDEN, "You have no role in any run.")
    return render(request, "control/runs.html", {"rows": desk_rows(runs)})


@run_desk
@require_safe
def run_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Everything about one run."""
    context = desk_context(request, run) | {"launch": LaunchForm()}
    return render(request, "control/run.html", context)


@run_desk_for(Right.ORGANISE)
@require_http_methods(["GET", "HEAD", "POST"])
def run_move(request: DeskRequest, run: Run, event: str) -> HttpResponse:
    """Say what a move will do; then do it."""
    state = RunState(run.state)
    move = move_named(event, state)
    form = MoveForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        run_transition(request.user, run, event, form.cleaned_data["reason"])
        messages.success(request, f"{run.title} was {run.state_reason}.")
        return redirect("control:run", run.slug)
    if move is None:
        messages.warning(request, f"A run that is {state} cannot do that.")
        return redirect("control:run", run.slug)
    effect = move_effect(move, state, live_state(run)["num_peers"])
    context = {"run": run, "move": move, "effect": effect, "form": form}
    return render(request, "control/move.html", context)
