"""How to join a run with a machine, and the trainer to install."""

import re

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from training.protocol.errors import ErrorCode
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.errors import AppError
from web.pages.forms import AskForm
from web.pages.mine import member_of, strip_devices
from web.pages.requirements import needs_gpu, requirement_line
from web.runs.models import Run
from web.runs.request_selectors import approval_is_missing, asks_again_at, join_request_of
from web.runs.selectors import config_current, run_get_visible
from web.runs.services import join_request_make, join_request_withdraw

WHEEL_NAME = f"beeyard-{TRAINER_VERSION}-py3-none-any.whl"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,120}\.whl")


@require_safe
def join_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Requirements, commands, and the panel that waits for the machine."""
    run = run_get_visible(request.user, slug)
    config = config_current(run).body
    run_url = settings.PUBLIC_URL + reverse("pages:run", args=[slug])
    wheel_url = settings.PUBLIC_URL + reverse("pages:download", args=[WHEEL_NAME])
    context = {
        "run": run,
        "is_open": run.state == RunState.OPEN,
        "requirement": requirement_line(config),
        "needs_gpu": needs_gpu(config),
        "install_command": f'pip install "beeyard[train] @ {wheel_url}"',
        "join_command": f"beeyard join {run_url}",
        "doctor_command": f"beeyard doctor {run_url}",
        "devices": strip_devices(request.user, run),
        **_approval(request, run),
    }
    return render(request, "pages/join.html", context)


@login_required
@require_POST
def join_ask(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask the run's moderators whether one may join."""
    run = run_get_visible(request.user, slug)
    form = AskForm(request.POST)
    if form.is_valid():
        join_request_make(member_of(request), run, form.cleaned_data["text"])
        messages.success(request, "Your request waits for an organiser.")
    else:
        messages.warning(request, "Not sent: at most 300 characters of plain text.")
    return redirect("pages:join", slug)


@login_required
@require_POST
def join_withdraw(request: HttpRequest, slug: str) -> HttpResponse:
    """Take one's request back while it waits."""
    run = run_get_visible(request.user, slug)
    try:
        join_request_withdraw(member_of(request), run)
        messages.success(request, "Your request is withdrawn.")
    except AppError as error:
        if error.code != ErrorCode.BODY_INVALID:
            raise
        messages.warning(request, error.detail)
    return redirect("pages:join", slug)


@login_required
@require_safe
def waiting_fragment(request: HttpRequest, slug: str) -> HttpResponse:
    """The waiting panel alone."""
    run = run_get_visible(request.user, slug)
    context = {"run": run, "devices": strip_devices(request.user, run)}
    return render(request, "pages/join_waiting_fragment.html", context)


def _approval(request: HttpRequest, run: Run) -> dict[str, object]:
    """Return whether the visitor has to ask first, and how far that is."""
    user = request.user
    if run.join_policy == Run.JoinPolicy.OPEN:
        return {}
    if not isinstance(user, User):
        return {"needs_approval": True}
    asked = join_request_of(run, user)
    again_at = asks_again_at(asked)
    return {
        "needs_approval": approval_is_missing(run, user),
        "is_approved": asked is not None and asked.state == asked.State.APPROVED,
        "asked": asked,
        "asks_again_at": again_at if again_at and again_at > timezone.now() else None,
        "ask_form": AskForm(),
    }


@require_safe
def download(request: HttpRequest, name: str) -> HttpResponse:
    """The trainer's wheel, as this site built it."""
    path = settings.DATA_DIR / "dist" / name
    if not _SAFE_NAME.fullmatch(name) or not path.is_file():
        raise AppError(
            ErrorCode.NOT_FOUND,
            f"This site has no file {name}. The current one is {WHEEL_NAME}; it is built when the"
            " site starts.",
        )
    response = HttpResponse(path.read_bytes(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
