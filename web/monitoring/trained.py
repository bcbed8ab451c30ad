"""How many samples a saved state of the model was trained with."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping

from web.monitoring.models import EpochRecord
from web.runs.models import Run
from web.runs.selectors import lineage_starts

State = tuple[int, int]
"""Lineage and epoch: the state in which that epoch began."""


def samples_by_then(run: Run, states: Collection[State]) -> dict[State, int]:
    """Return the samples that are in each of these states, in two queries (none without states).

    What was trained after the place where a later lineage branched off is in none of its states.
    """
    if not states:
        return {}
    records = EpochRecord.objects.filter(run=run).order_by("lineage", "epoch")
    rows = records.values_list("lineage", "epoch", "samples")
    return samples_in(states, lineage_starts(run), rows.iterator(chunk_size=10_000))


def samples_in(
    states: Iterable[State],
    starts: Mapping[int, State],
    records: Iterable[tuple[int, int, int]],
) -> dict[State, int]:
    """Return the samples in each state from ``records`` (lineage, epoch, samples), in order. Pure.

    ``starts`` tells from which state a lineage went on; one that is missing began with none.
    """
    sums: dict[int, tuple[list[int], list[int]]] = {}
    for lineage, epoch, samples in records:
        epochs, totals = sums.setdefault(lineage, ([], [0]))
        epochs.append(epoch)
        totals.append(totals[-1] + samples)
    found = {}
    for state in states:
        lineage, epoch = state
        total = _before(sums, lineage, epoch)
        while (start := starts.get(lineage)) and start[0] < lineage:
            lineage, epoch = start[0], min(epoch, start[1])
            total += _before(sums, lineage, epoch)
        found[state] = total
    return found


def _before(sums: Mapping[int, tuple[list[int], list[int]]], lineage: int, epoch: int) -> int:
    epochs, totals = sums.get(lineage, ([], [0]))
    return totals[bisect_left(epochs, epoch)]
