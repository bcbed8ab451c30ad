"""Whether the totals are what the ledger says. Looks, tells, and changes nothing."""

import logging
from datetime import datetime
from typing import Any

from django.db import transaction

from training.protocol.states import CreditState
from web.contributions.accounting import Total, totals_of
from web.contributions.models import ContributionTotal, LedgerCheck, LedgerEntry
from web.contributions.services import entry_of
from web.core.audit import audit_record
from web.runs.models import Run

CHECKS_KEPT = 100
_SECONDS_TOLERANCE = 0.01
_CHUNK = 5000
_MAX_TOLD = 20
logger = logging.getLogger(__name__)


def totals_check(now: datetime) -> LedgerCheck:
    """Compare every run's totals with its ledger and keep what was found.

    Differences are logged and audited; ``manage.py rebuild_totals`` ends them.
    """
    differences: list[dict[str, Any]] = []
    num_totals = 0
    for run in Run.objects.order_by("pk"):
        number, found = _run_compare(run)
        num_totals += number
        differences += found
    check = LedgerCheck.objects.create(
        at=now,
        num_totals=num_totals,
        num_differences=len(differences),
        differences=differences[:_MAX_TOLD],
    )
    if differences:
        logger.error("%s totals differ from the ledger: %s", len(differences), check.differences)
        data = {"differences": len(differences), "first": differences[0]}
        audit_record(None, "ledger.totals.differ", "ledger", data)
    kept = LedgerCheck.objects.values_list("pk", flat=True)[:CHECKS_KEPT]
    LedgerCheck.objects.exclude(pk__in=list(kept)).delete()
    return check


@transaction.atomic
def _run_compare(run: Run) -> tuple[int, list[dict[str, Any]]]:
    """Return how many totals a run has, and which are wrong. Its lock keeps new entries out."""
    Run.objects.select_for_update().get(pk=run.pk)
    entries = LedgerEntry.objects.filter(run=run, state=CreditState.CONFIRMED).order_by("pk")
    by_ledger = totals_of(map(entry_of, entries.iterator(chunk_size=_CHUNK)))
    rows = ContributionTotal.objects.filter(run=run)
    kept = {(row.run_id, row.user_id): _total(row) for row in rows}
    found = []
    for key in sorted(by_ledger.keys() | kept.keys()):
        ledger, total = by_ledger.get(key, Total()), kept.get(key, Total())
        if _differ(ledger, total):
            figures = {"ledger": ledger.samples, "total": total.samples}
            found.append({"run": run.slug, "user": key[1], **figures})
    return len(kept), found


def _total(row: ContributionTotal) -> Total:
    return Total(row.samples, row.seconds, row.epochs, row.last_at)


def _differ(ledger: Total, total: Total) -> bool:
    if abs(ledger.seconds - total.seconds) > _SECONDS_TOLERANCE * max(1, ledger.epochs):
        return True
    exact = [(item.samples, item.epochs, item.last_at) for item in (ledger, total)]
    return exact[0] != exact[1]
