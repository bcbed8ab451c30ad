"""How far a machine's word has held so far, in one word. The judgement is pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Q

from training.protocol.states import CreditState
from web.contributions.models import LedgerEntry, Suspicion
from web.runs.models import Run

PROVEN_EPOCHS: Final = 20
"""Confirmed epochs after which a machine is no newcomer."""
DOUBTED_SHARE: Final = 0.05
"""More of its epochs than this rejected: its word is in doubt."""


@dataclass(frozen=True)
class Standing:
    """Counts of one machine in one run."""

    confirmed: int = 0
    rejected: int = 0
    waiting: int = 0
    open: int = 0
    upheld: int = 0

    @property
    def word(self) -> str:
        """``held``, ``doubted``, ``new`` or ``proven``."""
        if self.open:
            return "held"
        total = self.confirmed + self.rejected
        if self.upheld or (total and self.rejected > total * DOUBTED_SHARE):
            return "doubted"
        return "proven" if self.confirmed >= PROVEN_EPOCHS else "new"

    @property
    def text(self) -> str:
        """The figures behind it."""
        parts = [f"{self.confirmed:,} epochs confirmed", f"{self.rejected:,} rejected"]
        if self.waiting:
            parts.append(f"{self.waiting:,} waiting")
        if self.upheld:
            parts.append(f"{self.upheld} suspicion{'' if self.upheld == 1 else 's'} upheld")
        return ", ".join(parts)


NEWCOMER = Standing()


def standings_of(run: Run, device_ids: Collection[int] | None = None) -> Mapping[int, Standing]:
    """Return the standing of these machines, or of all, in two queries; newcomers are left out."""
    only = Q() if device_ids is None else Q(device_id__in=device_ids)
    settled = Q(state=CreditState.PROVISIONAL, settlement__isnull=True)
    entries = (
        LedgerEntry.objects.filter(only, run=run, corrects=None)
        .order_by()
        .values("device_id")
        .annotate(
            confirmed=Count("pk", filter=Q(state=CreditState.CONFIRMED)),
            rejected=Count("pk", filter=Q(state=CreditState.REJECTED)),
            waiting=Count("pk", filter=settled),
        )
    )
    suspicions = (
        Suspicion.objects.filter(only, run=run)
        .order_by()
        .values("device_id")
        .annotate(
            open=Count("pk", filter=Q(state=Suspicion.State.OPEN)),
            upheld=Count("pk", filter=Q(state=Suspicion.State.UPHELD)),
        )
    )
    counts: dict[int, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = [dict(row) for row in (*entries, *suspicions)]
    for row in rows:
        counts.setdefault(row.pop("device_id"), {}).update(row)
    return {device_id: Standing(**row) for device_id, row in counts.items()}
