"""Which of the kept resolutions answers for which stretch of a run's history."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from web.monitoring.models import MetricPoint
from web.runs.models import Run

_Kind = MetricPoint.Resolution
_SLOTS_PER_POINT = 2
"""A thinned row is fine enough when a point of the chart stands for so many of its slots."""

Span = tuple[datetime, datetime]
Stretch = tuple[int, datetime | None, datetime | None]
"""A resolution, from when (included) and until when (not included); None: without end."""


def points_between(
    run: Run, start: datetime | None, end: datetime | None, points: int
) -> "QuerySet[MetricPoint]":
    """Return the rows from ``start`` to ``end``, each stretch of time once.

    They come in the coarsest resolution that a chart of so many points cannot tell from the
    finest: thinned rows keep the extremes of what they stand for.
    """
    kept = _kept(run)
    rows = MetricPoint.objects.filter(run=run)
    if not kept:
        return rows.none()
    low = min(first for first, _ in kept.values())
    high = max(last for _, last in kept.values())
    low, high = max(low, start or low), min(high, end or high)
    width = (high - low).total_seconds() / max(1, points // 2)
    rows = rows.filter(_filter(stretches(kept, width)))
    if start is not None:
        rows = rows.filter(at__gte=start)
    return rows if end is None else rows.filter(at__lte=end)


def stretches(kept: Mapping[int, Span], width: float) -> list[Stretch]:
    """Return which resolution to read from when to when, for points of ``width`` seconds. Pure.

    ``kept``: first and last row of each resolution, by its seconds. The wanted resolution goes as
    far as it reaches; finer ones go on after it, coarser ones come before it.
    """
    wanted = max((k for k in kept if k * _SLOTS_PER_POINT <= width), default=min(kept))
    found: list[Stretch] = [(wanted, None, None)]
    begins, ends = kept[wanted][0], _end(wanted, kept[wanted][1])
    for kind in sorted((k for k in kept if k < wanted), reverse=True):
        found.append((kind, ends, None))
        ends = max(ends, _end(kind, kept[kind][1]))
    for kind in sorted(k for k in kept if k > wanted):
        found.append((kind, None, begins))
        begins = min(begins, kept[kind][0])
    return found


def _filter(parts: Iterable[Stretch]) -> Q:
    rows = Q()
    for kind, begins, ends in parts:
        part = Q(resolution=kind)
        if begins is not None:
            part &= Q(at__gte=begins)
        if ends is not None:
            part &= Q(at__lt=ends)
        rows |= part
    return rows


def _end(kind: int, last: datetime) -> datetime:
    """Return where the slot of a thinned row ends; a raw row stands for its own instant."""
    if not kind:
        return last + timedelta(microseconds=1)
    whole = int(last.timestamp()) // kind * kind + kind
    return datetime.fromtimestamp(whole, last.tzinfo)


def _kept(run: Run) -> dict[int, Span]:
    """Return the first and the last instant of each resolution that is there; one query."""

    def edge(kind: _Kind, order: str) -> Any:
        rows = MetricPoint.objects.filter(run=OuterRef("pk"), resolution=kind).order_by(order)
        return Subquery(rows.values("at")[:1])

    edges = {f"{end}_{kind.name}": edge(kind, order)
             for kind in _Kind for end, order in (("first", "at"), ("last", "-at"))}  # fmt: skip
    found: dict[str, Any] = Run.objects.filter(pk=run.pk).values(**edges)[0]  # type: ignore[assignment]
    return {
        int(kind): (found[f"first_{kind.name}"], found[f"last_{kind.name}"])
        for kind in _Kind
        if found[f"first_{kind.name}"] is not None
    }
