"""What looks wrong about a device: pure functions over what it and others reported.

Each is meant to be quiet about honest machines, however odd: nothing counts against a device
before an organiser has looked. Raise a bound when honest machines are noticed by it.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

CLASS_FACTOR = 8.0
"""So many times the median of its hardware's class is more than tuning explains."""
CLASS_SIZE = 3
"""Other devices of the class that are needed for a comparison."""
LOSS_EPOCHS = 3
"""In so many epochs in a row a loss has to be far off."""
LOSS_SPREADS = 8.0
LOSS_SHARE = 0.5
CLOCK_SECONDS = 90.0
"""Above the longest life of a record that a coordinator finds after the trainer has died."""
CLOCK_REPORTS = 3
"""So many reports in a row have to be dated wrongly."""
RETURNS = 2
"""Going back to the former place once may be a machine that moved; twice is two machines."""


class Tick(NamedTuple):
    """One signed report of a device, as far as a second process and the clock show in it."""

    at: float
    """When it was taken, in seconds."""
    samples: int
    """Computed since the process started."""
    speed: float
    """Samples per second."""
    late: float = 0.0
    """Seconds from its date to its arrival, by the coordinator's clock."""


def throughput_is_impossible(rate: float, others: Sequence[float]) -> bool:
    """Whether a rate is far above that of other devices with the same hardware."""
    known = [other for other in others if other > 0]
    return len(known) >= CLASS_SIZE and rate > CLASS_FACTOR * median(known)


def loss_is_outlying(loss: float, others: Sequence[float]) -> bool:
    """Whether a loss is far from the others', by their own spread and by half their size."""
    if len(others) < CLASS_SIZE:
        return False
    middle = median(others)
    spread = median(abs(other - middle) for other in others)
    distance = abs(loss - middle)
    return distance > LOSS_SPREADS * spread and distance > LOSS_SHARE * abs(middle)


def losses_are_outlying(epochs: Sequence[tuple[float, Sequence[float]]]) -> bool:
    """Whether that holds in each of the last epochs: own loss and the others', oldest first."""
    last = epochs[-LOSS_EPOCHS:]
    return len(last) == LOSS_EPOCHS and all(loss_is_outlying(own, rest) for own, rest in last)


def is_interleaved(ticks: Sequence[Tick]) -> bool:
    """Whether two processes report in turn with one key: the sum of one, then of the other.

    A trainer that restarts begins at 0 and needs time to get back; a second process is back at
    once, again and again.
    """
    ordered = sorted(ticks)
    returns = sum(
        _is_return(ordered[:index], before, after)
        for index, (before, after) in enumerate(pairwise(ordered), start=1)
    )
    return returns >= RETURNS


def _is_return(past: Sequence[Tick], before: Tick, after: Tick) -> bool:
    """Whether ``after`` reaches an earlier sum again faster than it could be computed."""
    earlier = max((tick.samples for tick in past), default=0)
    if before.samples >= earlier or after.samples < earlier:
        return False
    possible = 4 * max(before.speed, after.speed, 1.0) * (after.at - before.at)
    return after.samples - before.samples > possible


def clock_is_off(ticks: Sequence[Tick]) -> bool:
    """Whether the newest reports were all dated by a clock that goes wrong."""
    last = sorted(ticks)[-CLOCK_REPORTS:]
    return len(last) == CLOCK_REPORTS and all(abs(tick.late) > CLOCK_SECONDS for tick in last)
