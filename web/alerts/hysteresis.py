"""When an alert opens and closes, so that it does not flap. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

GAP = timedelta(minutes=5)
"""After so long without a check, what was seen before proves nothing about the time between."""


class Move(StrEnum):
    NONE = "none"
    OPEN = "open"
    CLOSE = "close"


@dataclass(frozen=True)
class Track:
    """What is remembered of one rule between checks."""

    is_open: bool = False
    changing_since: datetime | None = None
    """Since when every check spoke for the other state than the present one."""
    checked_at: datetime | None = None


def track_step(
    track: Track, is_bad: bool | None, now: datetime, *, opens_seconds: float, closes_seconds: float
) -> tuple[Track, Move]:
    """Return the next track and what happens now.

    It opens after ``opens_seconds`` of checks that were all bad and closes after
    ``closes_seconds`` of checks that were all good. A check without evidence (None), a gap or a
    clock that went back starts the wait anew.
    """
    if is_bad is None or is_bad == track.is_open:
        return Track(track.is_open, None, now), Move.NONE
    since = track.changing_since
    last = track.checked_at
    if since is None or last is None or not timedelta() <= now - last <= GAP:
        since = now
    wait = timedelta(seconds=closes_seconds if track.is_open else opens_seconds)
    if now - since < wait:
        return Track(track.is_open, since, now), Move.NONE
    return Track(is_bad, None, now), Move.OPEN if is_bad else Move.CLOSE
