"""How far this machine's clock is from the site's."""

import email.utils
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

WARN_SECONDS = 2.0
"""A clock that is further off is told of; the swarm's time is corrected in any case."""


class SiteClock:
    """Narrows the offset of the site's clock down from the ``Date`` headers it sends.

    A ``Date`` header has whole seconds, so that one answer bounds the offset to an interval;
    answers that come at other fractions of a second make the interval smaller.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._low: float | None = None
        self._high = 0.0

    @property
    def offset(self) -> float | None:
        """Site minus this machine, seconds; None before the first answer."""
        return None if self._low is None else (self._low + self._high) / 2

    @property
    def correction(self) -> float:
        """Seconds to add to this machine's clock; 0 while it agrees as far as can be told."""
        offset = self.offset
        return offset if offset is not None and self.is_off(0.0) else 0.0

    def is_off(self, seconds: float) -> bool:
        """Return whether the clocks surely differ by more than ``seconds``."""
        return self._low is not None and (self._low > seconds or self._high < -seconds)

    def wall(self) -> float:
        """This machine's clock, seconds since 1970."""
        return self._wall()

    def now(self) -> datetime:
        """Return the site's time, as well as it is known."""
        return datetime.fromtimestamp(self._wall(), UTC) + timedelta(seconds=self.correction)

    def observe(self, date_header: str | None, *, sent: float, received: float) -> None:
        """Learn from one answer; ``sent`` and ``received`` are this machine's time."""
        try:
            stamp = email.utils.parsedate_to_datetime(date_header or "").timestamp()
        except (ValueError, TypeError):
            return
        low, high = stamp - received, stamp + 1.0 - sent
        if self._low is None or low > self._high or high < self._low:
            self._low, self._high = low, high  # the first answer, or a clock was set anew
        else:
            self._low, self._high = max(self._low, low), min(self._high, high)
