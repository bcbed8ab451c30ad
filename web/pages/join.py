"""How to join a run with a machine, and the trainer to install."""

import re

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from training.protocol.errors import ErrorCode
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import RunState
from web.core.errors import AppError
from web.pages.mine import strip_devices
from web.pages.requirements import needs_gpu, requirement_line
from web.runs.selectors import config_current, run_get_visible

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
    }
    return render(request, "pages/join.html", context)


@login_required
@require_safe
def waiting_fragment(request: HttpRequest, slug: str) -> HttpResponse:
    """The waiting panel alone."""
    run = run_get_visible(request.user, slug)
    context = {"run": run, "devices": strip_devices(request.user, run)}
    return render(request, "pages/join_waiting_fragment.html", context)


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
