"""Trying again: exponential back-off with jitter, as long as there is patience."""

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from training.client.errors import PlatformError

T = TypeVar("T")
FIRST_WAIT = 0.5
"""Seconds."""
LONGEST_WAIT = 20.0


class Retry:
    """Repeats what failed for a passing reason until ``patience`` seconds are over.

    ``stop`` ends the waiting at once; the last error is then raised.
    """

    def __init__(self, patience: float, stop: threading.Event | None = None) -> None:
        self.patience = patience
        self.stop = stop or threading.Event()

    def run(self, attempt: Callable[[], T]) -> T:
        """Return what ``attempt`` returns.

        Raises:
            PlatformError: the last refusal, when it is final or patience is over.
        """
        deadline = time.monotonic() + self.patience
        number = 0
        while True:
            try:
                return attempt()
            except PlatformError as error:
                wait = retry_wait(number, error.retry_after, random.random())  # noqa: S311
                if not error.is_passing or time.monotonic() + wait > deadline:
                    raise
                if self.stop.wait(wait):
                    raise
            number += 1


def retry_wait(number: int, retry_after: float | None, chance: float) -> float:
    """Return the seconds to wait after failure ``number`` (from 0); ``chance`` is in [0, 1).

    The site's own wish (``Retry-After``) is the least; jitter keeps a crowd of trainers from
    coming back in the same second.
    """
    backoff = min(LONGEST_WAIT, FIRST_WAIT * float(2 ** min(number, 10)))
    return (retry_after or 0.0) + backoff * (0.5 + chance / 2)
