"""Short jobs about the ledger.

Schedule: ``evidence_settle_task`` every 30 s, ``ledger_check_task`` every night.
"""

from celery import shared_task
from django.utils import timezone

from web.contributions.checking import totals_check
from web.contributions.settlement import evidence_prune, evidence_settle


@shared_task
def evidence_settle_task() -> None:
    """Settle epochs whose evidence was waited for long enough."""
    evidence_settle(timezone.now())


@shared_task
def ledger_check_task() -> None:
    """Compare totals with the ledger; forget evidence that nobody needs any more."""
    totals_check(timezone.now())
    evidence_prune(timezone.now())
