"""The page of a run."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from web.accounts.countries import country_name
from web.accounts.names import HIDDEN_NAME
from web.contributions.selectors import leaderboard
from web.monitoring.selectors import FEWEST_PEOPLE, run_countries, run_events
from web.pages.leaderboard import PERIODS, period_of
from web.pages.mine import strip_devices
from web.pages.runview import run_view
from web.runs.models import Run
from web.runs.saved_files import saved_states
from web.runs.selectors import run_get_visible

BOARD_ROWS = 10
EVENT_ROWS = 50
CHECKPOINT_ROWS = 50
MAX_DIGITS = 15


@require_safe
def run_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything about a run; the live parts go on from the state in the page."""
    run = run_get_visible(request.user, slug)
    context = run_view(run, request.user, request.GET, timezone.now())
    context |= _board(request, run) | {"devices": strip_devices(request.user, run)}
    return render(request, "pages/run.html", context)


@require_safe
def events_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What happened in a run, older lines on demand; htmx gets the lines alone."""
    run = run_get_visible(request.user, slug)
    before = request.GET.get("before", "")
    number = int(before) if before.isdecimal() and len(before) <= MAX_DIGITS else None
    events = run_events(run, EVENT_ROWS + 1, before=number)
    context = {
        "run": run, "events": events[:EVENT_ROWS], "has_older_events": len(events) > EVENT_ROWS,
    }  # fmt: skip
    is_part = bool(request.headers.get("HX-Request"))
    name = "pages/run_events_fragment.html" if is_part else "pages/events.html"
    response = render(request, name, context)
    response["Vary"] = "HX-Request, Cookie"
    return response


@require_safe
def checkpoints_page(request: HttpRequest, slug: str) -> HttpResponse:
    """All saved states of a run, newest first."""
    run = run_get_visible(request.user, slug)
    after = request.GET.get("page", "1")
    number = max(1, int(after)) if after.isdecimal() and len(after) <= MAX_DIGITS // 3 else 1
    first = (number - 1) * CHECKPOINT_ROWS
    rows = list(run.checkpoints.defer("manifest")[first : first + CHECKPOINT_ROWS + 1])
    context = {
        "run": run, "checkpoints": saved_states(slug, rows[:CHECKPOINT_ROWS]),
        "page_number": number, "has_next": len(rows) > CHECKPOINT_ROWS,
    }  # fmt: skip
    return render(request, "pages/checkpoints.html", context)


@require_safe
def countries_page(request: HttpRequest, slug: str) -> HttpResponse:
    """From which countries people say they are, as sums; htmx gets the list alone."""
    run = run_get_visible(request.user, slug)
    found = run_countries(run, timezone.now())
    most = max((people for _, people in found), default=1)
    rows = [
        {"name": country_name(code), "people": people, "tenths": max(1, round(10 * people / most))}
        for code, people in found
    ]
    is_part = bool(request.headers.get("HX-Request"))
    name = "pages/countries_fragment.html" if is_part else "pages/countries.html"
    response = render(request, name, {"run": run, "rows": rows, "fewest": FEWEST_PEOPLE})
    response["Vary"] = "HX-Request, Cookie"
    return response


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
