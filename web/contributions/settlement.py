"""From evidence to the ledger: claims are judged as it comes in, and settled once.

Takes a fixed number of queries however many peers there are. The caller holds the lock of the
run's row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from training.protocol.metrics import EpochReport
from training.protocol.states import CreditState
from web.accounts.models import Device
from web.contributions.claims import (
    Claims,
    Member,
    Statement,
    claims_add,
    claims_of_report,
    claims_read,
)
from web.contributions.judging import judge
from web.contributions.ledger import entries_add, ledger_of
from web.contributions.models import EpochEvidence, LedgerEntry
from web.contributions.noticing import epochs_notice
from web.contributions.proofs import Case, Verdict
from web.contributions.services import barred_reason
from web.contributions.suspicions import held_devices, suspicions_raise, trusted_devices
from web.runs.models import Run
from web.runs.selectors import run_barred

EVIDENCE_PATIENCE = timedelta(minutes=5)
"""Claims wait so long for signed reports, from the arrival of the coordinator's report. Raise it
when averaging rounds take longer than a few minutes."""
LATE = timedelta(minutes=2)
"""As long as a trainer's report lives: of a site that heard of an epoch later than this, nobody
can expect a signed report by those who have left."""
MAX_OPEN = 200
"""Epochs that are judged at one time; others of a run wait for their turn."""
EVIDENCE_KEPT = timedelta(days=30)
_NO_LINEAGE = -1


@dataclass(frozen=True)
class Finished:
    """An epoch that a coordinator reports for the first time."""

    report: EpochReport
    seconds: float
    """Its length."""


@dataclass
class _Open:
    """An epoch whose claims are not all settled."""

    row: EpochEvidence
    claims: Claims
    is_changed: bool
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, int]:
        return self.row.lineage, self.row.epoch


def epochs_settle(
    run: Run,
    lineage: int,
    *,
    finished: Sequence[Finished] = (),
    members: Mapping[str, Member] | None = None,
    statements: Sequence[Statement] = (),
    now: datetime,
) -> None:
    """Add reports and signed statements to what is known, and write down what is settled by it.

    Args:
        members: by key thumbprint, for ``finished``.
        statements: of peers of this lineage.

    """
    opened = [*_open_read(run), *_open_make(run, lineage, finished, members or {}, now)]
    if not opened:
        return
    for item in opened:
        if item.row.lineage == lineage:
            for statement in statements:
                row = item.row
                if claims_add(item.claims, statement, row.epoch, row.finished_at):
                    item.is_changed = True
    judged = [item for item in opened if item.is_changed or item.row.due_at <= now]
    if judged:
        _judge(run, judged, now)


def evidence_settle(now: datetime) -> int:
    """Settle what was waited for in vain, also when no snapshot comes any more; in all runs.

    Return in how many runs something was due.
    """
    due = EpochEvidence.objects.filter(settled_at=None, due_at__lte=now)
    ids = sorted(set(due.order_by().values_list("run_id", flat=True)))
    for run_id in ids:
        with transaction.atomic():
            run = Run.objects.select_for_update().get(pk=run_id)
            epochs_settle(run, _NO_LINEAGE, now=now)
    return len(ids)


def evidence_prune(now: datetime) -> int:
    """Forget evidence of epochs that were settled long ago; the ledger keeps what came of it."""
    old = EpochEvidence.objects.filter(settled_at__lt=now - EVIDENCE_KEPT)
    return old.delete()[0]


def _open_read(run: Run) -> list[_Open]:
    rows = EpochEvidence.objects.filter(run=run, settled_at=None).order_by("lineage", "epoch")
    return [_Open(row, claims_read(row.claims), is_changed=False) for row in rows[:MAX_OPEN]]


def _open_make(
    run: Run,
    lineage: int,
    finished: Sequence[Finished],
    members: Mapping[str, Member],
    now: datetime,
) -> list[_Open]:
    return [
        _Open(
            EpochEvidence(
                run=run,
                lineage=lineage,
                epoch=item.report.epoch,
                finished_at=item.report.finished_at,
                seconds=item.seconds,
                accumulated=item.report.accumulated,
                due_at=now + EVIDENCE_PATIENCE,
            ),
            claims_of_report(item.report, members),
            is_changed=True,
        )
        for item in finished
    ]


def _judge(run: Run, judged: Sequence[_Open], now: datetime) -> None:
    ids = {claim.device for item in judged for claim in item.claims.values()}
    devices = Device.objects.filter(pk__in=ids).select_related("user").in_bulk()
    held, trusted = held_devices(run, ids), trusted_devices(run, ids, now)
    accounts = run_barred(run)
    barred = {pk: barred_reason(device, accounts) for pk, device in devices.items()}
    for item in judged:
        proofs = [
            claim.proof(
                peer_id,
                barred=barred.get(claim.device, ""),
                held=held.get(claim.device, ""),
                is_trusted=claim.device in trusted,
            )
            for peer_id, claim in item.claims.items()
        ]
        item.verdicts = judge(
            Case(
                proofs,
                item.row.accumulated,
                is_overdue=item.row.due_at <= now,
                is_late=item.row.due_at - EVIDENCE_PATIENCE > item.row.finished_at + LATE,
            )
        )
    _ledger_write(run, judged)
    found = epochs_notice(run, [(i.row, i.claims, i.verdicts) for i in judged], devices)
    _evidence_write(judged, now)
    suspicions_raise(run, found, now)


def _ledger_write(run: Run, judged: Sequence[_Open]) -> None:
    known = ledger_of(run, [item.row for item in judged])
    new: list[LedgerEntry] = []
    for item in judged:
        for verdict in item.verdicts:
            before = known.get((*item.key, verdict.device_id))
            is_wait = verdict.state is CreditState.PROVISIONAL
            if before is None and verdict.samples > 0:
                new.append(_entry(run, item.row, verdict))
            elif before is not None and before.is_open and not is_wait:
                new.append(_entry(run, item.row, verdict, settles=before.pk))
    entries_add(new)


def _entry(
    run: Run, row: EpochEvidence, verdict: Verdict, settles: int | None = None
) -> LedgerEntry:
    return LedgerEntry(
        run=run,
        lineage=row.lineage,
        epoch=row.epoch,
        device_id=verdict.device_id,
        user_id=verdict.user_id,
        samples=verdict.samples,
        seconds=row.seconds,
        state=verdict.state,
        ground=verdict.ground,
        reason=verdict.text[:200],
        finished_at=row.finished_at,
        settles_id=settles,
    )


def _is_complete(item: _Open) -> bool:
    """Whether nothing more can come: all is decided, and nobody is missing who was seen there."""
    named = {peer_id for claim in item.claims.values() for peer_id in claim.weights}
    return named <= item.claims.keys() and all(verdict.is_final for verdict in item.verdicts)


def _evidence_write(judged: Sequence[_Open], now: datetime) -> None:
    for item in judged:
        by_device = {verdict.device_id: verdict for verdict in item.verdicts}
        for claim in item.claims.values():
            verdict = by_device[claim.device]
            claim.judged, claim.ground = verdict.samples, verdict.ground
            claim.witnesses, claim.attested = verdict.num_witnesses, verdict.attested
        if item.row.due_at <= now or _is_complete(item):
            item.row.settled_at = now
        if item.row.settled_at:
            for claim in item.claims.values():
                claim.weights = {}
        item.row.claims = {
            peer_id: claim.model_dump(mode="json", exclude_defaults=True)
            for peer_id, claim in item.claims.items()
        }
    EpochEvidence.objects.bulk_create([i.row for i in judged if i.row.pk is None], batch_size=500)
    fields = ("claims", "settled_at")
    old = [item.row for item in judged if item.row.pk is not None]
    EpochEvidence.objects.bulk_update(old, fields, batch_size=100)
