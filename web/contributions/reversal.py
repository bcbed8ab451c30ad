"""Taking back what a device or an account was credited: corrections in bulk, nothing is erased."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Count, F, Max, Min, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from training.protocol.states import CreditState
from web.accounts.models import Device, User
from web.contributions.ledger import entries_add, entries_waiting, settlement_of
from web.contributions.models import LedgerEntry
from web.core.audit import audit_record, reason_require
from web.runs.models import Run
from web.runs.services.runs import organiser_require


def entries_reversible(
    run: Run, lineages: Sequence[int], user: User, *, from_epoch: int, device: Device | None = None
) -> QuerySet[LedgerEntry]:
    """Return the entries that still count, each with ``counted`` samples and ``spent`` seconds."""
    entries = LedgerEntry.objects.filter(
        run=run,
        lineage__in=lineages,
        user=user,
        epoch__gte=from_epoch,
        corrects=None,
        state=CreditState.CONFIRMED,
    )
    if device is not None:
        entries = entries.filter(device=device)
    counted = F("samples") + Coalesce(Sum("corrections__samples"), Value(0))
    spent = F("seconds") + Coalesce(Sum("corrections__seconds"), Value(0.0))
    return entries.annotate(counted=counted, spent=spent).filter(counted__gt=0).order_by("pk")


def entries_rejectable(
    run: Run, lineages: Sequence[int], user: User, *, from_epoch: int, device: Device | None = None
) -> QuerySet[LedgerEntry]:
    """Return the entries that wait for evidence or for an organiser, and might count later."""
    entries = entries_waiting(run).filter(lineage__in=lineages, user=user, epoch__gte=from_epoch)
    return entries if device is None else entries.filter(device=device)


def reversal_sums(entries: QuerySet[LedgerEntry]) -> dict[str, int | None]:
    """Return ``num``, ``samples``, ``first`` and ``last`` epoch of entries to be reversed."""
    return entries.aggregate(
        num=Count("pk"),
        total=Coalesce(Sum("counted"), Value(0)),
        first=Min("epoch"),
        last=Max("epoch"),
    )


@transaction.atomic
def entries_reverse(
    actor: User,
    run: Run,
    entries: QuerySet[LedgerEntry],
    reason: str,
    *,
    waiting: QuerySet[LedgerEntry] | None = None,
) -> list[LedgerEntry]:
    """Add a correction to each of ``entries_reversible`` that takes back all it counts.

    ``waiting`` (of ``entries_rejectable``) is rejected, so that it does not count later.

    Totals follow in the same transaction. Doing it again finds nothing that still counts.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason).
    """
    organiser_require(actor, run)
    text = reason_require(reason)
    Run.objects.select_for_update().get(pk=run.pk)
    corrections = [
        entry.follow_up(
            samples=-entry.counted,  # type: ignore[attr-defined]
            seconds=-entry.spent,  # type: ignore[attr-defined]
            state=CreditState.CONFIRMED,
            reason=text[:200],
            corrects=entry,
        )
        for entry in entries
    ]
    rejected = [
        settlement_of(entry, entry.samples, CreditState.REJECTED, reason)
        for entry in (waiting if waiting is not None else ())
    ]
    entries_add([*corrections, *rejected])
    audit_record(
        actor,
        "ledger.reversed",
        run.slug,
        {
            "entries": len(corrections),
            "rejected": len(rejected),
            "samples": sum(entry.samples for entry in corrections),
            "reason": reason[:300],
        },
    )
    return corrections
