"""What the charts of a run show, as tables for programs."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from web.monitoring.marks import run_marks
from web.monitoring.replay import run_throughput
from web.monitoring.selectors import run_series
from web.monitoring.series import (
    EPOCH_METRICS,
    MEAN_METRICS,
    run_epochs_are_thinned,
    run_series_by_lineage,
    run_series_is_thinned,
)
from web.pages.charts import ChartQuery, chart_query
from web.pages.runview import SERIES
from web.runs.models import Run
from web.runs.selectors import run_get_visible
from web.workers.evaluation_series import evaluation_points, metrics_in

POINTS = 5000
EXTREME: Final = "lowest or highest of a stretch"
MEAN: Final = "mean of a stretch"
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]


@require_safe
def series_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Loss and throughput over the shown stretch; along the epoch axis, every lineage's epochs."""
    run = run_get_visible(request.user, slug)
    query = chart_query(request.GET)
    table = epochs_table(run, query) if query.x == "epoch" else series_table(run, query)
    return _answer(f"{slug}-series", table)


@require_safe
def history_csv(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    """One of the other charts' numbers over the shown stretch."""
    run = run_get_visible(request.user, slug)
    make = _KINDS.get(kind)
    if make is None:
        raise Http404
    return _answer(f"{slug}-{kind}", make(run, chart_query(request.GET)))


def series_table(run: Run, query: ChartQuery) -> Table:
    """Return the points along time."""
    start = query.start(timezone.now())
    series = run_series(run, SERIES, start, query.end, POINTS)
    is_thinned = run_series_is_thinned(run, start, query.end, POINTS)
    return ("time", *_heads(SERIES, is_thinned=is_thinned)), _rows(
        {"t": series["t"], **{n: series[n] for n in SERIES}}
    )


def epochs_table(run: Run, query: ChartQuery) -> Table:
    """Return the finished epochs, with how their time was spent."""
    columns = run_series_by_lineage(run, EPOCH_METRICS, POINTS, first=query.first, last=query.last)
    is_thinned = run_epochs_are_thinned(run, POINTS, first=query.first, last=query.last)
    heads = ("lineage", "epoch", *_heads(EPOCH_METRICS, is_thinned=is_thinned))
    return heads, zip(*columns.values(), strict=True)


def throughput_table(run: Run, query: ChartQuery) -> Table:
    """Return samples per second by hardware class."""
    columns = run_throughput(run, query.start(timezone.now()), query.end, POINTS)
    return ("time", *list(columns)[1:]), _rows(columns)


def marks_table(run: Run, query: ChartQuery) -> Table:
    """Return config changes, incidents, checkpoints."""
    marks = run_marks(run, query.start(timezone.now()), query.end)
    rows = ((m.at.isoformat(), m.kind, m.text, m.lineage, m.epoch) for m in marks)
    return ("time", "kind", "text", "lineage", "epoch"), rows


def evaluations_table(run: Run, _query: ChartQuery) -> Table:
    """Return the figures of all evaluated checkpoints, whatever stretch is shown."""
    points = evaluation_points(run, POINTS)
    names = metrics_in(points)
    rows = (
        (
            p.lineage,
            p.epoch,
            p.samples,
            p.at.isoformat() if p.at else "",
            *map(p.figures.get, names),
        )
        for p in points
    )
    return ("lineage", "epoch", "samples", "evaluated", *names), rows


_KINDS: Final[dict[str, Callable[[Run, ChartQuery], Table]]] = {
    "throughput": throughput_table,
    "epochs": epochs_table,
    "marks": marks_table,
    "evaluations": evaluations_table,
}


def _heads(names: Sequence[str], *, is_thinned: bool) -> Sequence[str]:
    """Return the columns' heads; of thinned rows they say that no row was measured as it is."""
    if not is_thinned:
        return names
    return [f"{name} ({MEAN if name in MEAN_METRICS else EXTREME})" for name in names]


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterable[Sequence[Any]]:
    """Yield rows whose first cell is an instant."""
    for at, *rest in zip(*columns.values(), strict=True):
        yield datetime.fromtimestamp(at, UTC).isoformat(), *rest


def _answer(name: str, table: Table) -> HttpResponse:
    names, rows = table
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow([_safe(name) for name in names])
    writer.writerows([_safe(cell) for cell in row] for row in rows)
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _safe(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" else cell
