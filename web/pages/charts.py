"""What the charts show: parsed from the address, so that a view can be shared. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import QueryDict

RANGES: Final[dict[str, timedelta | None]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "all": None,
}
SCALES: Final = ("linear", "log")
AXES: Final = ("time", "epoch", "samples")
SMOOTHS: Final = ("0", "0.6", "0.9", "0.97")
"""Weight of what came before, in a moving mean."""
_MAX_EPOCH: Final = 2**31 - 1


@dataclass(frozen=True)
class ChartQuery:
    """A view of the charts. ``start_at`` and ``end_at`` are a stretch that was zoomed into, and go
    before ``range``; ``first`` and ``last`` are the same along the epoch axis."""

    range: str = "all"
    scale: str = "linear"
    x: str = "time"
    smooth: str = "0"
    start_at: datetime | None = None
    end_at: datetime | None = None
    first: int | None = None
    last: int | None = None

    def start(self, now: datetime) -> datetime | None:
        """Return the first instant to show; None: from the beginning."""
        if self.is_zoomed:
            return self.start_at
        length = RANGES[self.range]
        return None if length is None else now - length

    @property
    def end(self) -> datetime | None:
        """The last instant to show; None: up to now."""
        return self.end_at

    @property
    def is_zoomed(self) -> bool:
        """Whether a stretch is chosen that no button names."""
        return self.start_at is not None or self.end_at is not None


def chart_query(params: QueryDict) -> ChartQuery:
    """Return the view that an address asks for; unknown values give the default ones."""
    choices = (("range", RANGES), ("scale", SCALES), ("x", AXES), ("smooth", SMOOTHS))
    given: dict[str, Any] = {
        name: str(value) for name, allowed in choices if (value := params.get(name)) in allowed
    }
    return ChartQuery(
        **given,
        start_at=instant_of(params.get("from")),
        end_at=instant_of(params.get("to")),
        first=_epoch_of(params.get("first")),
        last=_epoch_of(params.get("last")),
    )


def instant_of(text: str | None) -> datetime | None:
    """Return the instant that an address names, in UTC unless it says otherwise; else None."""
    try:
        at = datetime.fromisoformat((text or "").strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if 1970 <= at.year < 9999 else None


def _epoch_of(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) < 11
    return min(int(text or 0), _MAX_EPOCH) if is_number else None


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


def polylines_at(
    lines: Sequence[Sequence[tuple[float, float]]], *, width: float, height: float
) -> list[str]:
    """Return the points of one SVG polyline per line, all in the same frame.

    A line of one point is drawn from there to there: round ends make it a dot.
    """
    every = [point for line in lines for point in line]
    if not every:
        return []
    (left, right), (low, high) = ((min(v), max(v)) for v in zip(*every, strict=True))

    def place(x: float, y: float) -> str:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (y - low) / (high - low) if high > low else 0.5
        return f"{across * width:.1f},{(1 - up) * height:.1f}"

    return [
        " ".join(place(*p) for p in (line if len(line) > 1 else [*line, *line])) for line in lines
    ]
