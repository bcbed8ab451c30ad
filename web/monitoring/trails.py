"""The last signed reports of each trainer: what shows a second process or a wrong clock. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from web.contributions.detectors import Tick, clock_is_off, is_interleaved
from web.contributions.grounds import SuspicionKind
from web.contributions.noticing import Found

TRAIL_LENGTH = 10
"""Reports that are kept of each trainer of the swarm."""
Trails = dict[str, list[list[float]]]
"""Ticks by device, as JSON has them. Trainers that left the swarm are not in it."""


def trails_follow(
    known: Mapping[str, Sequence[Sequence[float]]], news: Mapping[int, Tick]
) -> Trails:
    """Return the trails with the reports of a snapshot; a report that is seen again adds nothing.

    Args:
        known: the trails before.
        news: the newest report of each device.

    """
    trails: Trails = {}
    for device_id, tick in news.items():
        old = [list(item) for item in known.get(str(device_id), ())]
        is_new = all(item[0] != tick.at for item in old)
        trails[str(device_id)] = [*old, list(tick)][-TRAIL_LENGTH:] if is_new else old
    return trails


def trails_notice(trails: Mapping[str, Sequence[Sequence[float]]]) -> list[Found]:
    """Return what the trails show."""
    found = []
    for device, rows in trails.items():
        ticks = _ticks(rows)
        if is_interleaved(ticks):
            sums = {"samples": [int(tick.samples) for tick in sorted(ticks)]}
            found.append(Found(int(device), SuspicionKind.KEY_IN_TWO_PLACES, sums))
        if clock_is_off(ticks):
            late = {"seconds_late": round(max(ticks).late, 1)}
            found.append(Found(int(device), SuspicionKind.CLOCK, late))
    return found


def _ticks(rows: Iterable[Sequence[float]]) -> list[Tick]:
    return [Tick(at, int(samples), speed, late) for at, samples, speed, late in rows]
