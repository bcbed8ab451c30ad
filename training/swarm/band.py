"""What is usual for a number that every epoch brings, such as the norm of a gradient."""

import math
import statistics
from collections import deque

_MEMORY = 32
_MIN_LEARNED = 8
_PATIENCE = 3
_DEVIATIONS = 8.0
_LEAST_RATIO = 10.0
"""Gradients grow and shrink by themselves during training, seldom so much from one epoch to
the next."""


class NormBand:
    """Learns the usual size from accepted values and tells what is far above it.

    Median and median deviation of the logarithms: a few odd values move neither. When a value is
    refused for the third time in a row, the training itself has changed rather than the values,
    and learning begins anew: the band must never stop a peer for good.
    """

    def __init__(self) -> None:
        self._logs: deque[float] = deque(maxlen=_MEMORY)
        self._samples: deque[float] = deque(maxlen=_MEMORY)
        self._refused = 0

    def limit(self, samples: float = 1.0) -> float:
        """Return the largest usual norm of a mean over ``samples``; infinite while learning.

        A mean over fewer samples than usual scatters more, with their square root.
        """
        if len(self._logs) < _MIN_LEARNED:
            return math.inf
        middle = statistics.median(self._logs)
        spread = statistics.median(abs(value - middle) for value in self._logs)
        few = math.sqrt(max(1.0, statistics.median(self._samples) / max(samples, 1e-9)))
        width = max(math.log(_LEAST_RATIO), _DEVIATIONS * 1.4826 * spread)
        return math.exp(min(middle + width, 700.0)) * few

    def accept(self, norm: float, samples: float = 1.0) -> bool:
        """Judge a norm, and learn from it when it is accepted. Not finite: never accepted."""
        if not math.isfinite(norm):
            return False
        if norm > self.limit(samples):
            self._refused += 1
            if self._refused >= _PATIENCE:
                self.forget()
            return False
        self._refused = 0
        if norm > 0:
            self._logs.append(math.log(norm))
            self._samples.append(samples)
        return True

    def forget(self) -> None:
        """Begin to learn anew."""
        self._logs.clear()
        self._samples.clear()
        self._refused = 0
