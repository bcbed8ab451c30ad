"""What is counted, for whom, and how totals follow from ledger entries. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from training.protocol.states import CreditState

LONGEST_EPOCH = timedelta(hours=2)
"""More time than this is not credited for one epoch: the swarm was away in between. Raise it
for runs whose epochs really last longer."""


@dataclass(frozen=True)
class Entry:
    """The part of a ledger entry that totals are made of."""

    run_id: int
    user_id: int
    samples: int
    seconds: float
    state: CreditState
    finished_at: datetime
    is_correction: bool = False


@dataclass(frozen=True)
class Total:
    """What an account has in a run. ``epochs`` counts each of its devices."""

    samples: int = 0
    seconds: float = 0.0
    epochs: int = 0
    last_at: datetime | None = None


def epoch_seconds(
    finished_at: datetime, previous_at: datetime | None, opened_at: datetime | None = None
) -> float:
    """Return the length of an epoch that ended at ``finished_at``, in seconds.

    It began when the epoch before it ended, or when the run was opened again after that. With
    neither known, the length is 0.
    """
    begins = [at for at in (previous_at, opened_at) if at is not None and at <= finished_at]
    if not begins:
        return 0.0
    return min(finished_at - max(begins), LONGEST_EPOCH).total_seconds()


def total_add(total: Total, entry: Entry) -> Total:
    """Return the total with one more entry; only confirmed ones count."""
    if entry.state is not CreditState.CONFIRMED:
        return total
    if entry.is_correction:
        return replace(
            total,
            samples=total.samples + entry.samples,
            seconds=total.seconds + entry.seconds,
        )
    return Total(
        samples=total.samples + entry.samples,
        seconds=total.seconds + entry.seconds,
        epochs=total.epochs + 1,
        last_at=entry.finished_at
        if total.last_at is None
        else max(total.last_at, entry.finished_at),
    )


def totals_of(entries: Iterable[Entry]) -> dict[tuple[int, int], Total]:
    """Return totals by (run, account)."""
    totals: dict[tuple[int, int], Total] = {}
    for entry in entries:
        key = (entry.run_id, entry.user_id)
        totals[key] = total_add(totals.get(key, Total()), entry)
    return {key: total for key, total in totals.items() if total != Total()}


def ranks_of(samples: Sequence[int]) -> list[int]:
    """Return the rank of each of the falling numbers; equal ones share a rank."""
    ranks: list[int] = []
    for index, number in enumerate(samples):
        is_tie = index > 0 and number == samples[index - 1]
        ranks.append(ranks[-1] if is_tie else index + 1)
    return ranks


def shares_of(samples: Mapping[int, int]) -> dict[int, float]:
    """Return each account's part of all samples, from 0 to 1."""
    whole = sum(samples.values())
    return {key: number / whole if whole > 0 else 0.0 for key, number in samples.items()}
