"""The page of a run."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from web.contributions.selectors import HIDDEN_NAME, leaderboard
from web.pages.charts import chart_query
from web.pages.leaderboard import PERIODS, period_of
from web.pages.mine import strip_devices
from web.pages.runview import run_view
from web.runs.models import Run
from web.runs.selectors import run_get_visible

BOARD_ROWS = 10


@require_safe
def run_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything about a run; the live parts go on from the state in the page."""
    run = run_get_visible(request.user, slug)
    query = chart_query(request.GET)
    context = run_view(run, request.user, query, timezone.now())
    context |= _board(request, run) | {"devices": strip_devices(request.user, run)}
    return render(request, "pages/run.html", context)


@require_safe
def strip_fragment(request: HttpRequest, slug: str) -> HttpResponse:
    """The visitor's own strip alone."""
    run = run_get_visible(request.user, slug)
    context = {"run": run, "devices": strip_devices(request.user, run)} | _board(request, run)
    return render(request, "pages/run_strip_fragment.html", context)


@require_safe
def board_fragment(request: HttpRequest, slug: str) -> HttpResponse:
    """The top of the leaderboard alone."""
    run = run_get_visible(request.user, slug)
    return render(request, "pages/run_board_fragment.html", {"run": run} | _board(request, run))


def _board(request: HttpRequest, run: Run) -> dict[str, Any]:
    period = period_of(request)
    board = leaderboard(run, period, viewer=request.user, limit=BOARD_ROWS, offset=0)
    return {"board": board, "period": period, "periods": PERIODS, "hidden_name": HIDDEN_NAME}
