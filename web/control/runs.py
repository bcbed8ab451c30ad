"""The desk of a run: how it goes, and the moves of its organiser."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.control.access import DeskRequest, desk_runs, run_desk, run_desk_for
from web.control.desk import desk_context, desk_rows, runs_with_parts
from web.control.forms import MoveForm
from web.control.launch_forms import LaunchForm
from web.control.moves import move_effect, move_named
from web.control.run_forms import MessageForm, PauseForm, TextsForm
from web.core.errors import AppError
from web.monitoring.selectors import live_state
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.selectors import config_newest, run_is_organised_by
from web.runs.services import run_describe, run_message_send, run_transition


@login_required
@require_safe
def runs_page(request: DeskRequest) -> HttpResponse:
    """The runs in which the visitor has a role; all of them for the staff."""
    runs = list(runs_with_parts(desk_runs(request.user), request.user))
    if not runs and not request.user.is_staff:
        raise AppError(ErrorCode.FORBIDDEN, "You have no role in any run.")
    return render(request, "control/runs.html", {"rows": desk_rows(runs)})


@run_desk
@require_safe
def run_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Everything about one run."""
    context = desk_context(request, run)
    context["launch"] = LaunchForm(nodes=context["nodes"])
    return render(request, "control/run.html", context)


@run_desk_for(Right.ORGANISE)
@require_http_methods(["GET", "HEAD", "POST"])
def run_move(request: DeskRequest, run: Run, event: str) -> HttpResponse:
    """Say what a move will do; then do it."""
    state = RunState(run.state)
    move = move_named(event, state)
    data = request.POST if request.method == "POST" else None
    form = PauseForm(data) if event == "pause" else MoveForm(data)
    if request.method == "POST" and form.is_valid():
        until = form.until_at(timezone.now()) if isinstance(form, PauseForm) else None
        try:
            run_transition(request.user, run, event, form.cleaned_data["reason"], until=until)
        except AppError as error:
            if not error.detail.startswith("until: "):
                raise
            form.add_error("until", error.detail.removeprefix("until: "))
        else:
            messages.success(request, f"{run.title} was {run.state_reason}.")
            return redirect("control:run", run.slug)
    if move is None:
        messages.warning(request, f"A run that is {state} cannot do that.")
        return redirect("control:run", run.slug)
    newest = config_newest(run)
    if move.event == "open" and newest is None:
        messages.warning(request, "A run opens with a published config only: publish its draft.")
        return redirect("control:draft", run.slug)
    beat = newest.body["report"]["heartbeat_seconds"] if newest else 30.0
    effect = move_effect(move, state, live_state(run)["num_peers"], beat)
    context = {"run": run, "move": move, "effect": effect, "form": form}
    return render(request, "control/move.html", context)


@run_desk
@require_http_methods(["GET", "HEAD", "POST"])
def run_message(request: DeskRequest, run: Run) -> HttpResponse:
    """Tell something to everybody who watches the run."""
    if not run_is_organised_by(request.user, run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may speak for it.")
    form = MessageForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        run_message_send(request.user, run, form.cleaned_data["text"])
        messages.success(request, "It stands in the run's events now.")
        return redirect("control:run", run.slug)
    return render(request, "control/run_message.html", {"run": run, "form": form})


@run_desk_for(Right.ORGANISE)
@require_http_methods(["GET", "HEAD", "POST"])
def run_texts(request: DeskRequest, run: Run) -> HttpResponse:
    """Change how the run is presented, and whether everybody sees it."""
    initial = {name: getattr(run, name) for name in TextsForm.base_fields}
    form = TextsForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        if run_describe(request.user, run, **form.cleaned_data):
            messages.success(
                request, "Saved. Open pages show the texts when they are loaded again."
            )
        return redirect("control:run", run.slug)
    return render(request, "control/run_texts.html", {"run": run, "form": form})
