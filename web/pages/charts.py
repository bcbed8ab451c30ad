"""What the charts show: parsed from the address, so that a view can be shared. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.http import QueryDict

RANGES: Final[dict[str, timedelta | None]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "all": None,
}
SCALES: Final = ("linear", "log")
AXES: Final = ("time", "epoch", "samples")


@dataclass(frozen=True)
class ChartQuery:
    range: str = "all"
    scale: str = "linear"
    x: str = "time"

    def start(self, now: datetime) -> datetime | None:
        """Return the first instant to show; None: from the beginning."""
        length = RANGES[self.range]
        return None if length is None else now - length


def chart_query(params: QueryDict) -> ChartQuery:
    """Return the view that an address asks for; unknown values give the default ones."""
    given = {
        name: value
        for name, allowed in (("range", RANGES), ("scale", SCALES), ("x", AXES))
        if (value := params.get(name)) in allowed
    }
    return ChartQuery(**{name: str(value) for name, value in given.items()})


def polyline(
    values: Sequence[float | None],
    *,
    width: float = 100.0,
    height: float = 30.0,
    floor: float | None = None,
) -> str:
    """Return the points of an SVG polyline through the values, evenly spaced; gaps are skipped.

    ``floor``: the lower edge, instead of the lowest value. Empty when there is no line to draw.
    """
    known = [(i, v) for i, v in enumerate(values) if v is not None]
    if len(known) < 2:
        return ""
    low = min(v for _, v in known) if floor is None else floor
    high = max(v for _, v in known)
    span, last = (high - low) or 1.0, len(values) - 1
    return " ".join(
        f"{i / last * width:.1f},{(1 - (v - low) / span) * height:.1f}" for i, v in known
    )
