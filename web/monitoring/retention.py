"""How history ages: raw for a day, then thinned by the minute, after a month by the hour."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db import transaction

from web.monitoring.models import MetricPoint, RunEvent
from web.monitoring.moments_age import moments_thin
from web.monitoring.rollup import Value, rows_keep, slot_of
from web.runs.models import Run

RAW_KEPT = timedelta(days=1)
MINUTE_KEPT = timedelta(days=30)
EVENTS_KEPT = timedelta(days=30)
LATE = timedelta(seconds=30)
"""A slot is thinned only this long after its end: snapshots may arrive late."""
_STRETCH = timedelta(days=1)
_Kind = MetricPoint.Resolution
_SOURCES = {_Kind.MINUTE: _Kind.RAW, _Kind.HOUR: _Kind.MINUTE}
_METRICS: tuple[Callable[[MetricPoint], Value], ...] = (
    lambda point: point.loss,
    lambda point: point.samples_per_second,
    lambda point: point.num_peers,
)


def points_rollup(now: datetime) -> int:
    """Thin out what is complete; return how many rows were added. Idempotent."""
    return sum(_rollup(run, kind, now) for run in Run.objects.all() for kind in _SOURCES)


def points_prune(now: datetime) -> int:
    """Forget rows whose thinned copies are there, and old events; return how many rows."""
    points_rollup(now)
    pruned = 0
    for run in Run.objects.all():
        pruned += _prune(run, _Kind.RAW, _Kind.MINUTE, now - RAW_KEPT)
        pruned += _prune(run, _Kind.MINUTE, _Kind.HOUR, now - MINUTE_KEPT)
    pruned += moments_thin(now)
    pruned += RunEvent.objects.filter(at__lt=now - EVENTS_KEPT).delete()[0]
    return pruned


@transaction.atomic
def _rollup(run: Run, kind: MetricPoint.Resolution, now: datetime) -> int:
    start = _next_slot(run, kind)
    if start is None:
        return 0
    source = run.points.filter(resolution=_SOURCES[kind], at__gte=start)
    # The slot of the newest source row may not be whole yet.
    newest = source.order_by("-at").values_list("at", flat=True)[0]
    end = _floor(min(now - LATE, start + _STRETCH, newest), int(kind))
    source = source.filter(at__lt=end)
    kept = [
        _copy(point, kind)
        for _, slot in groupby(source.order_by("at"), lambda p: slot_of(p.at, int(kind)))
        for point in rows_keep(list(slot), _METRICS)
    ]
    MetricPoint.objects.bulk_create(kept, ignore_conflicts=True, batch_size=1000)
    return len(kept)


def _next_slot(run: Run, kind: MetricPoint.Resolution) -> datetime | None:
    """Return where thinning goes on: at the first source row after the last thinned slot."""
    source = run.points.filter(resolution=_SOURCES[kind]).order_by("at")
    done = run.points.filter(resolution=kind).order_by("-at").values_list("at", flat=True).first()
    if done is not None:
        source = source.filter(at__gte=_floor(done, int(kind)) + timedelta(seconds=int(kind)))
    first = source.values_list("at", flat=True).first()
    return None if first is None else _floor(first, int(kind))


def _prune(
    run: Run, kind: MetricPoint.Resolution, coarser: MetricPoint.Resolution, before: datetime
) -> int:
    """Delete rows before an instant as far as the coarser ones reach, whole coarse slots only."""
    last = run.points.filter(resolution=coarser).order_by("-at").values_list("at", flat=True)
    reached = last.first()
    if reached is None:
        return 0
    limit = _floor(min(before, reached + timedelta(seconds=int(coarser))), int(coarser))
    return run.points.filter(resolution=kind, at__lt=limit).delete()[0]


def _copy(point: MetricPoint, kind: MetricPoint.Resolution) -> MetricPoint:
    return MetricPoint(
        run_id=point.run_id,
        resolution=kind,
        at=point.at,
        epoch=point.epoch,
        loss=point.loss,
        samples_per_second=point.samples_per_second,
        num_peers=point.num_peers,
        samples_total=point.samples_total,
    )


def _floor(at: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(slot_of(at, seconds) * seconds, UTC)
