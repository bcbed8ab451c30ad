"""Waiting for a round of averaging, and how long each part of it took."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hivemind.averaging.control import StepControl

LEAVE_SECONDS = 2.0
"""A peer that is told to leave gives a round that is under way so long, to keep the credit."""
_POLL_SECONDS = 0.05
"""Also how exactly matchmaking and averaging are told apart."""


@dataclass
class RoundTimes:
    """Seconds that the training stood still for a round."""

    matchmaking: float = 0.0
    """Until the group was there. Looking for one while computing goes on costs nothing."""
    averaging: float = 0.0
    """While the group exchanged gradients."""


def round_wait(
    control: StepControl,
    *,
    timeout: float,
    leaving: threading.Event,
    times: RoundTimes,
    look: Callable[[], None] = lambda: None,
) -> dict[Any, Any]:
    """Return what the round gave; ``times`` grows while this waits, also for a round that fails.

    A peer that leaves waits for a running round only. ``look`` is called again and again until
    the averaging begins; what it raises ends the wait.

    Raises:
        TimeoutError: the round is not over; whatever else it ended with is raised as it is.
    """
    end, is_hurried = time.monotonic() + timeout, False
    while True:
        began = time.monotonic()
        is_averaging = bool(control.began_allreduce)
        if leaving.is_set() and not is_hurried:
            is_hurried, end = True, min(end, began + LEAVE_SECONDS)
        try:
            return dict(control.result(min(_POLL_SECONDS, max(0.0, end - began))))
        except TimeoutError:
            if began >= end or control.done():
                raise
            if not is_averaging:
                look()
        finally:
            spent = time.monotonic() - began
            if is_averaging:
                times.averaging += spent
            else:
                times.matchmaking += spent
