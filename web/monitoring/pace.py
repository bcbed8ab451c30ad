"""How fast a run is over whole epochs, and when it will be done. Pure.

static/js/pace.js says the same in the browser; one table of cases tests both.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

FEWEST_EPOCHS: Final = 3
"""Fewer finished epochs say nothing of the next ones."""
_UNITS: Final = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))
_UNDER_WAY: Final = frozenset({"training", "averaging", "warming_up"})


def pace_range(epochs: Sequence[tuple[int, float]]) -> tuple[float, float] | None:
    """Return samples per second of a slow and a fast epoch: the ends of the middle three fifths.

    Args:
        epochs: samples and seconds of the last finished epochs.

    """
    rates = sorted(samples / seconds for samples, seconds in epochs if seconds > 0 and samples > 0)
    if len(rates) < FEWEST_EPOCHS:
        return None
    cut = len(rates) // 5
    return rates[cut], rates[-1 - cut]


def goal_samples(live: Mapping[str, Any]) -> int | None:
    """Return how many samples the run takes in all, about; None: it has no fixed end."""
    epochs: int | None = live["max_epochs"]
    return None if epochs is None else epochs * int(live["target_batch_size"])


def goal_share(live: Mapping[str, Any]) -> float | None:
    """Return how much of the run is done, from 0 to 1, in epochs and parts of one."""
    epochs = live["max_epochs"]
    if epochs is None:
        return None
    part = min(1.0, live["samples_accumulated"] / live["target_batch_size"])
    return min(1.0, (live["epoch"] + part) / epochs)


def eta_seconds(live: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return in how many seconds the run is done, at best and at worst; None: nobody can say."""
    goal, share = goal_samples(live), goal_share(live)
    if goal is None or share is None or live["state"] not in _UNDER_WAY:
        return None
    if not live["pace_low"] or not live["pace_high"]:
        return None
    rest = goal * (1 - share)
    return rest / live["pace_high"], rest / live["pace_low"]


def span_text(low: float, high: float) -> str:
    """Return a range of time in one unit: ``2 to 3 h``, ``about 40 s``."""
    for limit, unit, name in _UNITS:
        if high < limit:
            return _range(low / unit, high / unit, name)
    return _range(low / 86_400, high / 86_400, "days")


def eta_text(live: Mapping[str, Any]) -> str:
    """Return when the run is done, in words; empty when nobody can say."""
    found = eta_seconds(live)
    return f"{span_text(*found)} left" if found else ""


def _range(low: float, high: float, name: str) -> str:
    first, last = int(low), ceil(high)
    return f"about {last} {name}" if last - first <= 1 else f"{first} to {last} {name}"
