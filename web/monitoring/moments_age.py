"""How kept moments age: ten seconds apart for three hours, a minute for a week, then an hour."""

from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db import transaction

from web.monitoring.models import SwarmMoment, SwarmTurn
from web.monitoring.rollup import rows_keep, slot_of
from web.runs.models import Run

AGES = ((60, timedelta(hours=3)), (3600, timedelta(days=7)))
"""Length of the slots in seconds, and the age from which moments are thinned to them."""
MAX_TURNS = 2000
"""Of a run: a coordinator that comes and goes must not fill the database."""
_BATCH = 5000
_CHUNK = 500
"""Keys in one statement."""


def moments_thin(now: datetime) -> int:
    """Thin out moments by their age and forget the oldest turns; return how many rows went.

    Of each slot stay the last moment and those with the most and the fewest samples per second
    and peers. Idempotent; what an outage left over is thinned at the next call.
    """
    return sum(_thin(run, now) + _turns_prune(run) for run in Run.objects.all())


def _thin(run: Run, now: datetime) -> int:
    gone = 0
    for seconds, age in AGES:
        whole = slot_of(now - age, seconds) * seconds
        while True:
            removed, is_done = _thin_batch(run, seconds, whole)
            gone += removed
            if is_done:
                break
    return gone


@transaction.atomic
def _thin_batch(run: Run, seconds: int, before: int) -> tuple[int, bool]:
    """Thin the oldest moments that are not yet; return how many went, and whether none is left.
    ``before``: seconds since 1970, the beginning of a slot."""
    end = datetime.fromtimestamp(before, UTC)
    fine = run.moments.filter(resolution__lt=seconds, at__lt=end).order_by("at")
    rows = list(fine.defer("peers", "classes", "counts")[:_BATCH])
    is_done = len(rows) < _BATCH
    if not is_done:  # the last slot may go on in the next batch
        last = slot_of(rows[-1].at, seconds)
        rows = [row for row in rows if slot_of(row.at, seconds) != last] or rows
    kept = [
        row.pk
        for _, slot in groupby(rows, lambda row: slot_of(row.at, seconds))
        for row in rows_keep(list(slot), (lambda m: m.samples_per_second, lambda m: m.num_peers))
    ]
    lost = sorted({row.pk for row in rows} - set(kept))
    for i in range(0, len(rows), _CHUNK):
        SwarmMoment.objects.filter(pk__in=kept[i : i + _CHUNK]).update(resolution=seconds)
        SwarmMoment.objects.filter(pk__in=lost[i : i + _CHUNK]).delete()
    return len(lost), is_done


def _turns_prune(run: Run) -> int:
    oldest = run.turns.order_by("-id").values_list("pk", flat=True)[MAX_TURNS : MAX_TURNS + 1]
    limit = next(iter(oldest), None)
    return 0 if limit is None else SwarmTurn.objects.filter(run=run, pk__lte=limit).delete()[0]
