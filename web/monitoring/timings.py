"""How trainers spent their epochs, from their signed reports: one mean per epoch."""

from collections.abc import Sequence
from statistics import fmean

from training.protocol.metrics import EpochTiming
from web.contributions.claims import Statement
from web.monitoring.models import EpochRecord
from web.runs.models import Run

PARTS = ("computing", "matchmaking", "averaging", "waiting")
_MOST = 10
"""A report of more than so many times the epoch's own length is not taken into the means."""
_FIELDS = ("num_timed", "num_averaged", *(f"{part}_seconds" for part in PARTS))


def epochs_time(run: Run, lineage: int, statements: Sequence[Statement]) -> int:
    """Write down what a snapshot's reports say of finished epochs; return how many changed.

    Reports come again with every snapshot. An epoch keeps the reading with the most reports, so
    that no report counts twice and a trainer that has left is not forgotten for one that is late.
    """
    said = timings_gather(statements)
    if not said:
        return 0
    records = EpochRecord.objects.filter(run=run, lineage=lineage, epoch__in=list(said))
    changed = [
        _fill(record, said[record.epoch])
        for record in records
        if len(said[record.epoch]) > record.num_timed
    ]
    EpochRecord.objects.bulk_update(changed, _FIELDS)
    return len(changed)


def timings_gather(statements: Sequence[Statement]) -> dict[int, list[EpochTiming]]:
    """Return each epoch's timings, one per device: the first that a report names. Pure."""
    by_device: dict[tuple[int, int], EpochTiming] = {}
    for statement in statements:
        for timing in statement.metrics.timings:
            by_device.setdefault((timing.epoch, statement.member.device_id), timing)
    said: dict[int, list[EpochTiming]] = {}
    for (epoch, _), timing in by_device.items():
        said.setdefault(epoch, []).append(timing)
    return said


def _fill(record: EpochRecord, timings: Sequence[EpochTiming]) -> EpochRecord:
    record.num_timed = len(timings)
    record.num_averaged = sum(timing.averaged for timing in timings)
    usable = [t for t in timings if _total(t) <= _MOST * max(record.seconds, 60.0)]
    for part in PARTS:
        mean = fmean(getattr(t, part) for t in usable) if usable else None
        setattr(record, f"{part}_seconds", mean)
    return record


def _total(timing: EpochTiming) -> float:
    return sum(getattr(timing, part) for part in PARTS)
