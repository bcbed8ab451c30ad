"""How a trainer spends its epochs. Pure but for the clock, which is given."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from training.protocol.metrics import EpochTiming
from training.swarm.optimizer import FinishedEpoch

_MAX_SECONDS = 86_400.0


class EpochClock:
    """Adds up where the time between two ends of epochs goes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """``now`` gives seconds that never run back."""
        self._now = now
        self.restart()

    def restart(self) -> None:
        """Begin a new epoch now."""
        self._began, self._computing, self._paused = self._now(), 0.0, 0.0

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Count the time inside as computing."""
        began = self._now()
        try:
            yield
        finally:
            self._computing += self._now() - began

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Leave the time inside out: somebody wanted it so."""
        began = self._now()
        try:
            yield
        finally:
            self._paused += self._now() - began

    def epoch_end(self, finished: FinishedEpoch) -> EpochTiming:
        """Return how the epoch was spent, and begin the next one."""
        whole = max(0.0, self._now() - self._began - self._paused)
        computing, round_ = self._computing, finished.times
        waiting = max(0.0, whole - computing - round_.matchmaking - round_.averaging)
        self.restart()
        return EpochTiming(
            epoch=finished.epoch,
            computing=_bounded(computing),
            matchmaking=_bounded(round_.matchmaking),
            averaging=_bounded(round_.averaging),
            waiting=_bounded(waiting),
            group_size=finished.group_size,
        )


def _bounded(seconds: float) -> float:
    return round(min(seconds, _MAX_SECONDS), 1)
