"""Writes of the ledger. A total changes in the transaction of the entry behind it."""

from django.db import transaction

from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState
from web.accounts.models import Device, User
from web.contributions.accounting import Entry, Total, totals_of
from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.selectors import Barred
from web.runs.services.runs import organiser_require

NOBODY = Barred()
_CHUNK = 5000


def barred_reason(device: Device, barred: Barred = NOBODY) -> str:
    """Return why a device is not credited now; '' when it is.

    ``barred``: who is shut out of the run (``runs.selectors.run_barred``).
    """
    if device.user.is_banned:
        return "this account is suspended"
    if device.is_revoked:
        return "this device was revoked"
    if device.user_id in barred.users:
        return "this account is barred from the run"
    if device.pk in barred.devices:
        return "this machine is shut out of the run"
    return ""


@transaction.atomic
def entry_compensate(actor: User, entry: LedgerEntry, samples: int, reason: str) -> LedgerEntry:
    """Correct an entry by a new one that refers to it. ``samples`` is added, often negative.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, a correction of a correction, or more
            taken away than was counted).
    """
    run = Run.objects.select_for_update().get(pk=entry.run_id)
    organiser_require(actor, run)
    if entry.corrects_id is not None or entry.state != CreditState.CONFIRMED:
        raise AppError(ErrorCode.BODY_INVALID, "Only a confirmed first entry can be corrected.")
    text = reason_require(reason)
    counted = entry.samples + sum(entry.corrections.values_list("samples", flat=True))
    if counted + samples < 0:
        raise AppError(ErrorCode.BODY_INVALID, f"samples: only {counted} are counted.")
    correction = entry.follow_up(
        samples=samples, state=CreditState.CONFIRMED, reason=text[:200], corrects=entry
    )
    correction.save(force_insert=True)
    totals_grow(totals_of([entry_of(correction)]))
    audit_record(
        actor, "ledger.corrected", f"{run.slug}/{entry.pk}", {"samples": samples, "reason": reason}
    )
    return correction


@transaction.atomic
def totals_rebuild(run: Run | None = None) -> int:
    """Make the totals anew from the ledger, of one run or of all; return how many there are."""
    runs = Run.objects.select_for_update().order_by("pk")
    ids = list((runs.filter(pk=run.pk) if run else runs).values_list("pk", flat=True))
    entries = LedgerEntry.objects.filter(run_id__in=ids).order_by("pk")
    totals = totals_of(map(entry_of, entries.iterator(chunk_size=_CHUNK)))
    ContributionTotal.objects.filter(run_id__in=ids).delete()
    ContributionTotal.objects.bulk_create(
        [_row(key, total) for key, total in totals.items()], batch_size=_CHUNK
    )
    return len(totals)


def entry_of(row: LedgerEntry) -> Entry:
    """Return the part of a ledger row that totals are made of."""
    return Entry(
        run_id=row.run_id,
        user_id=row.user_id,
        samples=row.samples,
        seconds=row.seconds,
        state=CreditState(row.state),
        finished_at=row.finished_at,
        is_correction=row.corrects_id is not None,
    )


def totals_grow(totals: dict[tuple[int, int], Total]) -> None:
    """Add to the projection, in a fixed number of queries."""
    if not totals:
        return
    ids = {run_id for run_id, _ in totals}
    users = {user_id for _, user_id in totals}
    rows = {
        (row.run_id, row.user_id): row
        for row in ContributionTotal.objects.select_for_update().filter(
            run_id__in=ids, user_id__in=users
        )
    }
    ContributionTotal.objects.bulk_create(
        [_grown(rows.get(key), _row(key, total)) for key, total in totals.items()],
        update_conflicts=True,  # one statement for new and old rows, and no slower than an update
        unique_fields=["run", "user"],
        update_fields=["samples", "seconds", "epochs", "last_at"],
    )


def _grown(old: ContributionTotal | None, more: ContributionTotal) -> ContributionTotal:
    if old is not None:
        more.samples += old.samples
        more.seconds += old.seconds
        more.epochs += old.epochs
        if old.last_at is not None:
            more.last_at = max(more.last_at or old.last_at, old.last_at)
    return more


def _row(key: tuple[int, int], total: Total) -> ContributionTotal:
    run_id, user_id = key
    return ContributionTotal(
        run_id=run_id,
        user_id=user_id,
        samples=total.samples,
        seconds=total.seconds,
        epochs=total.epochs,
        last_at=total.last_at,
    )
