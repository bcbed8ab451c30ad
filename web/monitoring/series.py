"""History for charts, as columns; the database does the thinning."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import (
    Count,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast, NullIf

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.monitoring.models import EpochRecord, MetricPoint
from web.monitoring.rollup import Bucket, Columns, buckets_unfold
from web.runs.models import Run

POINTS = 500
MAX_POINTS = 5000
TIME_METRICS = ("loss", "samples_per_second", "num_peers", "epoch", "samples_total")
EPOCH_METRICS = ("loss", "samples_per_second", "num_peers", "samples", "seconds")


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
    rows = _finest(run)
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lte=end)
    columns = _columns(rows, "at", metrics, points)
    return {"t": columns.pop("x"), **columns}


def run_series_by_epoch(
    run: Run, metrics: Sequence[str], points: int = POINTS, *, lineage: int | None = None
) -> Columns:
    """Return ``epoch`` and a column per metric: every finished epoch of the newest lineage.

    Raises:
        AppError: BODY_INVALID (a metric that is not offered).
    """
    _metrics_require(metrics, EPOCH_METRICS)
    records = EpochRecord.objects.filter(run=run)
    if lineage is None:
        lineage = records.order_by("-lineage").values_list("lineage", flat=True).first()
    lineage = lineage or 1
    speed = Cast(F("samples"), FloatField()) / NullIf(F("seconds"), Value(0.0))
    rows = records.filter(lineage=lineage).annotate(samples_per_second=speed)
    columns = _columns(rows, "epoch", metrics, points)
    return {"epoch": columns.pop("x"), **columns}


def _metrics_require(metrics: Iterable[str], offered: Sequence[str]) -> None:
    unknown = sorted(set(metrics) - set(offered))
    if unknown:
        raise AppError(
            ErrorCode.BODY_INVALID,
            f"metrics: '{unknown[0][:40]}' is not one of {', '.join(offered)}.",
        )


def _finest(run: Run) -> "QuerySet[MetricPoint]":
    """Return each stretch of time once, in the finest resolution that is still kept."""
    kinds = MetricPoint.Resolution
    oldest = {
        kind: run.points.filter(resolution=kind).order_by("at").values_list("at", flat=True).first()
        for kind in (kinds.RAW, kinds.MINUTE)
    }
    minutes, hours = Q(resolution=kinds.MINUTE), Q(resolution=kinds.HOUR)
    if oldest[kinds.RAW]:
        minutes &= Q(at__lt=oldest[kinds.RAW])
        hours &= Q(at__lt=oldest[kinds.RAW])
    if oldest[kinds.MINUTE]:
        hours &= Q(at__lt=oldest[kinds.MINUTE])
    return MetricPoint.objects.filter(Q(resolution=kinds.RAW) | minutes | hours, run=run)


def _columns(rows: Any, field: str, metrics: Sequence[str], points: int) -> Columns:
    points = max(2, min(points, MAX_POINTS))
    rows = rows.order_by()
    span = rows.aggregate(low=Min(field), high=Max(field), count=Count("pk"))
    if span["count"] <= points:
        table = list(rows.order_by(field).values_list(field, *metrics))
        named = {name: [row[i + 1] for row in table] for i, name in enumerate(metrics)}
        return {"x": [_number(row[0]) for row in table], **named}
    slot = _slot(field, span["low"], span["high"], points // 2)
    extremes: dict[str, Any] = {f"low_{name}": Min(name) for name in metrics}
    extremes |= {f"high_{name}": Max(name) for name in metrics}
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
