"""Suspicions: raised by what was noticed, decided by organisers; work waits in between."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState
from web.accounts.models import User
from web.contributions.grounds import Ground, SuspicionKind, held_text
from web.contributions.ledger import entries_add, entries_waiting, settlement_of
from web.contributions.models import EpochEvidence, LedgerEntry, Suspicion
from web.contributions.noticing import Found
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.selectors import right_require

TRUSTED_FOR = timedelta(days=7)
"""What an organiser cleared is not raised again for so long."""
_WAITING = (Ground.QUARANTINED, Ground.SUM_TOO_LARGE, Ground.ONE_WORD)
logger = logging.getLogger(__name__)


def held_devices(run: Run, device_ids: Collection[int]) -> dict[int, str]:
    """Return why the work of devices waits, by device; trusted ones are left out."""
    rows = Suspicion.objects.filter(
        run=run, device_id__in=device_ids, state=Suspicion.State.OPEN
    ).order_by("pk")
    held: dict[int, str] = {}
    for device_id, kind in rows.values_list("device_id", "kind"):
        held.setdefault(device_id, held_text(SuspicionKind(kind)))
    return held


def trusted_devices(run: Run, device_ids: Collection[int], now: datetime) -> set[int]:
    """Return the devices whose claims an organiser found right lately."""
    rows = Suspicion.objects.filter(
        run=run,
        device_id__in=device_ids,
        state=Suspicion.State.CLEARED,
        decided_at__gt=now - TRUSTED_FOR,
        kind__in=(SuspicionKind.CLAIM_ABOVE_WEIGHT, SuspicionKind.SAMPLES_WITHOUT_AVERAGING),
    )
    return set(rows.values_list("device_id", flat=True))


def suspicions_raise(run: Run, found: Sequence[Found], now: datetime) -> list[Suspicion]:
    """Write down what is new; return it. The caller holds the lock of the run's row.

    From here on the devices' new work is provisional.
    """
    if not found:
        return []
    unique = {(item.device_id, item.kind): item for item in reversed(found)}
    since = now - TRUSTED_FOR
    rows = Suspicion.objects.filter(run=run, device_id__in={item.device_id for item in found})
    known = {
        (row.device_id, row.kind)
        for row in rows
        if row.state == Suspicion.State.OPEN
        or (row.state == Suspicion.State.CLEARED and row.decided_at and row.decided_at > since)
    }
    new = [
        Suspicion(run=run, device_id=pk, kind=kind, evidence=item.evidence, at=now)
        for (pk, kind), item in unique.items()
        if (pk, kind) not in known
    ]
    Suspicion.objects.bulk_create(new)
    for row in new:
        logger.warning(
            "run %s: device %s is suspicious: %s %s",
            *(run.slug, row.device.public_id, row.kind, row.evidence),
        )
        target = f"{run.slug}/{row.device.public_id}"
        audit_record(None, "suspicion.raised", target, {"kind": row.kind, **row.evidence})
    return new


@transaction.atomic
def suspicion_decide(
    actor: User, suspicion: Suspicion, *, is_trusted: bool, reason: str
) -> list[LedgerEntry]:
    """Clear a suspicion or uphold it; return the entries that settle the device's waiting work.

    Work waits on while another suspicion of the device is open.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, or decided already).
    """
    run = Run.objects.select_for_update().get(pk=suspicion.run_id)
    right_require(actor, run, Right.MODERATE)
    text = reason_require(reason)[:200]
    state = Suspicion.State.CLEARED if is_trusted else Suspicion.State.UPHELD
    decided = Suspicion.objects.filter(pk=suspicion.pk, state=Suspicion.State.OPEN).update(
        state=state, decided_at=timezone.now(), decided_by=actor, reason=text
    )
    if not decided:
        raise AppError(ErrorCode.BODY_INVALID, "This suspicion is decided already.")
    device = suspicion.device
    is_held = Suspicion.objects.filter(run=run, device=device, state=Suspicion.State.OPEN).exists()
    entries = [] if is_trusted and is_held else _settle(run, suspicion, is_trusted, text)
    audit_record(
        actor,
        f"suspicion.{state}",
        f"{run.slug}/{device.public_id}",
        {
            "kind": suspicion.kind,
            "reason": text,
            "entries": len(entries),
            "samples": sum(entry.samples for entry in entries),
        },
    )
    return entries


def _settle(run: Run, suspicion: Suspicion, is_trusted: bool, reason: str) -> list[LedgerEntry]:
    """Settle what waits for this decision alone; what still lacks evidence goes on waiting."""
    waiting = list(entries_waiting(run).filter(device_id=suspicion.device_id))
    evidence = EpochEvidence.objects.filter(
        run=run,
        lineage__in={entry.lineage for entry in waiting},
        epoch__in={entry.epoch for entry in waiting},
    )
    claims = {
        (row.lineage, row.epoch): claim
        for row in evidence
        for claim in row.claims.values()
        if claim["device"] == suspicion.device_id
    }
    entries = []
    for entry in waiting:
        claim = claims.get((entry.lineage, entry.epoch), {})
        if claim.get("ground", entry.ground) in _WAITING:
            entries.append(_decided(entry, claim, is_trusted, reason))
    entries_add(entries)
    return entries


def _decided(
    entry: LedgerEntry, claim: Mapping[str, Any], is_trusted: bool, reason: str
) -> LedgerEntry:
    samples = claim.get("judged", entry.samples)
    if is_trusted:
        return settlement_of(entry, samples, CreditState.CONFIRMED, "")
    attested = claim.get("attested", 0)
    if attested:  # what the other account saw is not in doubt
        return settlement_of(entry, attested, CreditState.CONFIRMED, reason)
    return settlement_of(entry, samples, CreditState.REJECTED, reason)
