"""Adding to the ledger: in bulk, with the totals in the same transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from training.protocol.states import CreditState
from web.contributions.accounting import totals_of
from web.contributions.grounds import Ground
from web.contributions.models import EpochEvidence, LedgerEntry
from web.contributions.services import entry_of, totals_grow
from web.runs.models import Run

_CHUNK = 1000


@dataclass(frozen=True)
class Known:
    """A device's first entry of an epoch."""

    pk: int
    is_open: bool
    """It is provisional, and nothing has settled it."""


def ledger_of(run: Run, rows: Sequence[EpochEvidence]) -> dict[tuple[int, int, int], Known]:
    """Return the first entries of some epochs, by lineage, epoch and device."""
    entries = LedgerEntry.objects.filter(
        run=run,
        lineage__in={row.lineage for row in rows},
        epoch__in={row.epoch for row in rows},
        corrects=None,
        settles=None,
    )
    fields = ("lineage", "epoch", "device_id", "pk", "state", "settlement__pk")
    return {
        (lineage, epoch, device): Known(pk, state == "provisional" and settlement is None)
        for lineage, epoch, device, pk, state, settlement in entries.order_by().values_list(*fields)
    }


def entries_waiting(run: Run) -> QuerySet[LedgerEntry]:
    """Return the provisional entries that nothing has settled, oldest first."""
    entries = LedgerEntry.objects.filter(run=run, settlement=None, settles=None)
    return entries.filter(state=CreditState.PROVISIONAL).order_by("pk")


def settlement_of(entry: LedgerEntry, samples: int, state: CreditState, reason: str) -> LedgerEntry:
    """Return the entry by which an organiser settles a provisional one."""
    return entry.follow_up(
        samples=samples,
        seconds=entry.seconds,
        state=state,
        ground=Ground.DECIDED,
        reason=reason.strip()[:200],
        settles=entry,
    )


def entries_add(entries: Sequence[LedgerEntry]) -> None:
    """Add entries; totals follow. The caller's transaction holds the lock of the run's row."""
    if entries:
        LedgerEntry.objects.bulk_create(entries, batch_size=_CHUNK)
        totals_grow(totals_of(map(entry_of, entries)))
