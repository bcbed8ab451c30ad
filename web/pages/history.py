"""A run's history: throughput by hardware, how time was spent, the timeline and its replay."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from web.monitoring.marks import run_marks
from web.monitoring.replay import moments_span, run_throughput, swarm_at
from web.monitoring.series import run_epochs_newest
from web.monitoring.timings import PARTS
from web.pages.charts import chart_query, instant_of
from web.runs.models import Run
from web.runs.selectors import run_get_visible

ROWS: Final = 24
NEWEST_MARKS: Final = 50
_SPENT = tuple(f"{part}_seconds" for part in PARTS)


@require_safe
def history_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The history on a page of its own, which works without scripts."""
    run = run_get_visible(request.user, slug)
    return render(request, "pages/history.html", _context(request, run))


@require_safe
def history_part(request: HttpRequest, slug: str) -> HttpResponse:
    """The history alone, for the page of the run."""
    run = run_get_visible(request.user, slug)
    return render(request, "pages/history_body.html", _context(request, run))


@require_safe
def moment_part(request: HttpRequest, slug: str) -> HttpResponse:
    """The swarm as it was at ``?at=`` alone."""
    run = run_get_visible(request.user, slug)
    return render(request, "pages/history_moment.html", _moment(request, run))


def _context(request: HttpRequest, run: Run) -> dict[str, Any]:
    query, now = chart_query(request.GET), timezone.now()
    throughput = run_throughput(run, query.start(now), query.end, 120)
    names = (*_SPENT, "averaged_share", "num_timed")
    spent = run_epochs_newest(run, names, ROWS, first=query.first, last=query.last)
    marks = run_marks(run, query.start(now), query.end)
    return {
        "run": run,
        "chart": query,
        "classes": list(throughput)[1:],
        "throughput_rows": throughput_rows(throughput),
        "spent_rows": spent,
        "marks": marks[: -NEWEST_MARKS - 1 : -1],
        "num_marks": len(marks),
        "span": moments_span(run),
    } | _moment(request, run)


def _moment(request: HttpRequest, run: Run) -> dict[str, Any]:
    at = instant_of(request.GET.get("at"))
    # An instant in whole seconds stands for all of it.
    asked = at + timedelta(seconds=1) if at and not at.microsecond else at
    return {"run": run, "at": at, "past": swarm_at(run, asked or timezone.now())}


def throughput_rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return some rows of the throughput chart, newest first."""
    count = len(columns["t"])
    names = list(columns)[1:]
    return [
        {
            "at": datetime.fromtimestamp(columns["t"][i], UTC),
            "rates": [columns[name][i] for name in names],
            "total": sum(columns[name][i] for name in names),
        }
        for i in range(count - 1, -1, -max(1, count // ROWS))
    ]
