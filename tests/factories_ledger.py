"""Ledger entries without evidence, for tests of what is made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from training.protocol.states import CreditState
from web.accounts.models import Device
from web.contributions.grounds import Ground
from web.contributions.ledger import entries_add
from web.contributions.models import LedgerEntry
from web.contributions.services import barred_reason
from web.runs.models import Run


@dataclass(frozen=True)
class Work:
    """Samples of a device in a finished epoch."""

    device: Device
    samples: int


@dataclass(frozen=True)
class FinishedEpoch:
    """An epoch that ended, and who took part."""

    epoch: int
    finished_at: datetime
    seconds: float
    work: Sequence[Work]


def epoch_credit(
    run: Run,
    *,
    lineage: int,
    epoch: int,
    finished_at: datetime,
    seconds: float,
    work: Iterable[Work],
    state: CreditState = CreditState.CONFIRMED,
    ground: Ground = Ground.PROVEN,
) -> list[LedgerEntry]:
    """Write down who took part in one finished epoch; doing it again adds nothing."""
    finished = FinishedEpoch(epoch, finished_at, seconds, tuple(work))
    return epochs_credit(run, lineage, [finished], state=state, ground=ground)


def epochs_credit(
    run: Run,
    lineage: int,
    finished: Sequence[FinishedEpoch],
    *,
    state: CreditState = CreditState.CONFIRMED,
    ground: Ground = Ground.PROVEN,
) -> list[LedgerEntry]:
    """Write down finished epochs; barred devices are rejected."""
    first = LedgerEntry.objects.filter(run=run, lineage=lineage, corrects=None, settles=None)
    known = set(first.values_list("epoch", "device_id"))
    entries = [
        _entry(run, lineage, item, work, state=state, ground=ground)
        for item in finished
        for work in item.work
        if work.samples and (item.epoch, work.device.pk) not in known
    ]
    entries_add(entries)
    return entries


def _entry(
    run: Run,
    lineage: int,
    item: FinishedEpoch,
    work: Work,
    *,
    state: CreditState,
    ground: Ground,
) -> LedgerEntry:
    barred = barred_reason(work.device)
    return LedgerEntry(
        run=run,
        lineage=lineage,
        epoch=item.epoch,
        device=work.device,
        user=work.device.user,
        samples=work.samples,
        seconds=item.seconds,
        state=CreditState.REJECTED if barred else state,
        ground=Ground.BARRED if barred else ground,
        reason=barred,
        finished_at=item.finished_at,
    )
