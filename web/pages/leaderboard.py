"""The whole leaderboard of a run."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from web.accounts.names import HIDDEN_NAME
from web.contributions.selectors import leaderboard
from web.runs.selectors import run_get_visible

PERIODS: Final[dict[str, str]] = {
    "all": "All time", "30d": "30 days", "7d": "7 days", "24h": "24 hours",
}  # fmt: skip
PAGE_SIZE: Final = 100


def period_of(request: HttpRequest) -> str:
    """Return the period that the address asks for; all time when it is not known."""
    period = request.GET.get("period", "all")
    return period if period in PERIODS else "all"


@require_safe
def leaderboard_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Everybody who contributed, by samples."""
    run = run_get_visible(request.user, slug)
    page = request.GET.get("page", "1")
    page_number = int(page) if page.isdecimal() and 0 < len(page) < 7 else 1
    offset = max(0, page_number - 1) * PAGE_SIZE
    period = period_of(request)
    board = leaderboard(run, period, viewer=request.user, limit=PAGE_SIZE + 1, offset=offset)
    rows = list(board.rows)
    context = {
        "run": run, "board": board, "rows": rows[:PAGE_SIZE], "period": period,
        "periods": PERIODS, "hidden_name": HIDDEN_NAME,
        "page_number": max(1, page_number), "has_next": len(rows) > PAGE_SIZE,
    }  # fmt: skip
    return render(request, "pages/leaderboard.html", context)
