"""Long charts as this process last drew them: their points are far apart, and age slowly."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from web.core.kept import Kept
from web.monitoring.rollup import Columns
from web.monitoring.series import run_series
from web.runs.models import Run

LONGEST = timedelta(minutes=1)
_kept: Kept["_Chart"] = Kept(64)


@dataclass(frozen=True)
class _Chart:
    columns: Columns
    good_until: datetime


def run_series_lately(
    run: Run, metrics: Sequence[str], length: timedelta | None, points: int, now: datetime
) -> Columns:
    """Return :func:`run_series` of the last ``length`` (None: of everything) up to ``now``.

    It may be old by half the distance of its points, a minute at most: nobody could see it in
    the line. A young run's points are a second apart, and it is read each time.
    """
    key = (run.pk, tuple(metrics), length, points)
    known = None if connection.in_atomic_block else _kept.find(key)
    if known is not None and now < known.good_until:
        return known.columns
    columns = run_series(run, metrics, None if length is None else now - length, None, points)
    times = columns["t"]
    apart = timedelta(seconds=(times[-1] - times[0]) / points) if times else timedelta()
    if not connection.in_atomic_block:
        _kept.keep(key, _Chart(columns, now + min(LONGEST, apart / 2)))
    return columns
