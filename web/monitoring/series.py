"""History for charts, as columns; the database does the thinning."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import (
    Avg,
    Count,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    Value,
)
from django.db.models.functions import Cast, NullIf

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.monitoring.models import EpochRecord
from web.monitoring.resolution import points_between
from web.monitoring.rollup import Bucket, Columns, buckets_unfold
from web.runs.models import Run

POINTS = 500
MAX_POINTS = 5000
TIME_METRICS = ("loss", "samples_per_second", "num_peers", "epoch", "samples_total")
EPOCH_METRICS = (
    "loss", "samples_per_second", "num_peers", "samples", "seconds", "averaged_share", "num_timed",
    "computing_seconds", "matchmaking_seconds", "averaging_seconds", "waiting_seconds",
)  # fmt: skip
MEAN_METRICS = frozenset(name for name in EPOCH_METRICS if name.endswith("_seconds"))
"""They lie on each other in a chart: the highest of each would add up to an epoch nobody had."""
MAX_LINEAGES = 8
MAX_BYTES = 60_000
"""Of one answer: any length of history is one request that a slow line carries."""
_WIDTHS = {"t": 15, "samples_total": 17, "num_peers": 7, "epoch": 11}
_WIDTH = 11
"""Of a number with its comma, to six significant digits."""


class TimeSlot(Func):
    """Number of the slot that an instant lies in: whole part of (instant - start) / width."""

    output_field = IntegerField()

    def __init__(self, field: str, start: float, width: float) -> None:
        super().__init__(F(field), Value(start, FloatField()), Value(width, FloatField()))

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "CAST(((julianday(%s) - 2440587.5) * 86400.0 - %s) / %s AS INTEGER)"
        return self._sql(compiler, template)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # EXTRACT answers a numeric, with which a million divisions take seconds.
        return self._sql(compiler, "FLOOR((DATE_PART('epoch', %s) - %s) / %s)::bigint")

    def _sql(self, compiler: Any, template: str) -> Any:
        parts = [compiler.compile(e) for e in self.get_source_expressions()]
        sql = template % tuple(sql for sql, _ in parts)
        return sql, [value for _, values in parts for value in values]


def run_series(
    run: Run,
    metrics: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
    points: int = POINTS,
) -> Columns:
    """Return ``t`` (seconds since 1970) and a column per metric, over time.

    At most ``points`` rows; when there are more, both extremes of every metric survive.

    Raises:
        AppError: BODY_INVALID (a metric that is not offered).
    """
    _metrics_require(metrics, TIME_METRICS)
    columns = _columns(points_between(run, start, end, points), "at", metrics, points)
    return {"t": columns.pop("x"), **columns}


def run_series_by_epoch(
    run: Run,
    metrics: Sequence[str],
    points: int = POINTS,
    *,
    lineage: int | None = None,
    first: int | None = None,
    last: int | None = None,
) -> Columns:
    """Return ``epoch`` and a column per metric: every finished epoch of one lineage, the newest
    unless given, from ``first`` to ``last``.

    Raises:
        AppError: BODY_INVALID (a metric that is not offered).
    """
    _metrics_require(metrics, EPOCH_METRICS)
    if lineage is None:
        lineage = next(iter(run_lineages(run)), 1)
    columns = _columns(_epochs(run, lineage, first, last), "epoch", metrics, points)
    return {"epoch": columns.pop("x"), **columns}


def run_series_by_lineage(
    run: Run,
    metrics: Sequence[str],
    points: int = POINTS,
    *,
    first: int | None = None,
    last: int | None = None,
) -> Columns:
    """Return ``lineage``, ``epoch`` and a column per metric, one lineage after the other.

    After a roll-back the same epochs are trained again: they are other points, of another
    lineage. Only the newest :data:`MAX_LINEAGES` are answered.

    Raises:
        AppError: BODY_INVALID (a metric that is not offered).
    """
    _metrics_require(metrics, EPOCH_METRICS)
    whole: Columns = {"lineage": [], "epoch": [], **{name: [] for name in metrics}}
    lineages = sorted(run_lineages(run)[:MAX_LINEAGES])
    share = max(2, points // max(1, len(lineages)))
    for lineage in lineages:
        found = _columns(_epochs(run, lineage, first, last), "epoch", metrics, share)
        whole["lineage"] += [lineage] * len(found["x"])
        whole["epoch"] += found["x"]
        for name in metrics:
            whole[name] += found[name]
    return whole


def run_epochs_newest(
    run: Run,
    metrics: Sequence[str],
    limit: int,
    *,
    first: int | None = None,
    last: int | None = None,
) -> list[dict[str, Any]]:
    """Return the newest epochs of the newest lineage whose trainers said how they spent them, as
    they were: no two of them in one. Newest first."""
    _metrics_require(metrics, EPOCH_METRICS)
    lineage = next(iter(run_lineages(run)), 1)
    rows = _epochs(run, lineage, first, last).filter(computing_seconds__isnull=False)
    return list(rows.order_by("-epoch").values("epoch", *metrics)[:limit])


def run_series_is_thinned(
    run: Run, start: datetime | None, end: datetime | None, points: int
) -> bool:
    """Return whether :func:`run_series` answers extremes of stretches instead of points."""
    return bool(points_between(run, start, end, points).count() > points)


def run_epochs_are_thinned(run: Run, points: int, *, first: int | None, last: int | None) -> bool:
    """Return whether :func:`run_series_by_lineage` answers extremes of stretches for a lineage."""
    lineages = run_lineages(run)[:MAX_LINEAGES]
    share = max(2, points // max(1, len(lineages)))
    return any(_epochs(run, number, first, last).count() > share for number in lineages)


def run_lineages(run: Run) -> list[int]:
    """Return the lineages that have finished an epoch, newest first."""
    records = EpochRecord.objects.filter(run=run).order_by("-lineage")
    return list(records.values_list("lineage", flat=True).distinct())


def points_that_fit(metrics: Iterable[str]) -> int:
    """Return how many points of these metrics stay below :data:`MAX_BYTES` as JSON."""
    return MAX_BYTES // (_WIDTHS["t"] + sum(_WIDTHS.get(name, _WIDTH) for name in metrics))


def _epochs(run: Run, lineage: int, first: int | None, last: int | None) -> Any:
    speed = Cast(F("samples"), FloatField()) / NullIf(F("seconds"), Value(0.0))
    share = Cast(F("num_averaged"), FloatField()) / NullIf(F("num_timed"), Value(0))
    rows = EpochRecord.objects.filter(run=run, lineage=lineage)
    if first is not None:
        rows = rows.filter(epoch__gte=first)
    if last is not None:
        rows = rows.filter(epoch__lte=last)
    return rows.annotate(samples_per_second=speed, averaged_share=share)


def _metrics_require(metrics: Iterable[str], offered: Sequence[str]) -> None:
    unknown = sorted(set(metrics) - set(offered))
    if unknown:
        raise AppError(
            ErrorCode.BODY_INVALID,
            f"metrics: '{unknown[0][:40]}' is not one of {', '.join(offered)}.",
        )


def _columns(rows: Any, field: str, metrics: Sequence[str], points: int) -> Columns:
    points = max(2, min(points, MAX_POINTS))
    rows = rows.order_by()
    span = rows.aggregate(low=Min(field), high=Max(field), count=Count("pk"))
    if span["count"] <= points:
        table = list(rows.order_by(field).values_list(field, *metrics))
        named = {name: [row[i + 1] for row in table] for i, name in enumerate(metrics)}
        return {"x": [_number(row[0]) for row in table], **named}
    slot = _slot(field, span["low"], span["high"], points // 2)
    of_low = {name: Avg if name in MEAN_METRICS else Min for name in metrics}
    of_high = {name: Avg if name in MEAN_METRICS else Max for name in metrics}
    extremes: dict[str, Any] = {f"low_{name}": of_low[name](name) for name in metrics}
    extremes |= {f"high_{name}": of_high[name](name) for name in metrics}
    groups = (
        rows.annotate(slot=slot)
        .values("slot")
        .annotate(first=Min(field), last=Max(field), **extremes)
        .order_by("slot")
    )
    buckets = [
        Bucket(
            first=_number(group["first"]),
            last=_number(group["last"]),
            extremes={name: (group[f"low_{name}"], group[f"high_{name}"]) for name in metrics},
        )
        for group in groups
    ]
    return buckets_unfold(buckets, metrics)


def _slot(field: str, low: Any, high: Any, num_slots: int) -> Any:
    """Return the expression that numbers the slots of an axis."""
    if field == "at":
        # Instants are exact to a millisecond here: a little more, so that the end is in a slot.
        span = (high - low).total_seconds() + 0.01
        return TimeSlot(field, low.timestamp(), span / num_slots)
    return (F(field) - low) / max(1, -(-(high - low + 1) // num_slots))


def _number(value: datetime | float) -> float:
    return value.astimezone(UTC).timestamp() if isinstance(value, datetime) else value
