"""What settled epochs show of devices: the detectors, fed with evidence."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.protocol.states import CreditState
from web.accounts.models import Device
from web.contributions.claims import Claims, claims_read
from web.contributions.detectors import (
    LOSS_EPOCHS,
    losses_are_outlying,
    throughput_is_impossible,
)
from web.contributions.grounds import Ground, SuspicionKind
from web.contributions.models import EpochEvidence
from web.contributions.proofs import Verdict
from web.runs.models import Run

ABSENCES = 3
ABSENCE_WINDOW = 20
"""So many epochs, of so many, in which a machine claims samples and nobody averaged with it."""
SHORTEST_EPOCH = 1.0
"""Rates of shorter epochs say nothing."""


@dataclass(frozen=True)
class Found:
    """Something that looks wrong about a device."""

    device_id: int
    kind: SuspicionKind
    evidence: dict[str, Any] = field(default_factory=dict)


Judged = tuple[EpochEvidence, Claims, Sequence[Verdict]]


def epochs_notice(run: Run, judged: Sequence[Judged], devices: Mapping[int, Device]) -> list[Found]:
    """Return what the epochs that were judged now show."""
    found: list[Found] = []
    for row, _, verdicts in judged:
        found += _of_verdicts(row, verdicts)
        found += _of_absences(run, row, verdicts)
        found += _of_rates(row, verdicts, devices)
    if any(claim.loss is not None for _, claims, _ in judged for claim in claims.values()):
        found += _of_losses(run, judged)
    return found


def _of_absences(run: Run, row: EpochEvidence, verdicts: Sequence[Verdict]) -> list[Found]:
    """A round may miss an honest machine now and then; again and again it is something else."""
    absent = {v.device_id: v.claimed for v in verdicts if _is_absence(v)}
    if not absent:
        return []
    lately = EpochEvidence.objects.filter(
        run=run, lineage=row.lineage, epoch__lt=row.epoch, epoch__gte=row.epoch - ABSENCE_WINDOW
    )
    counts = Counter(
        claim["device"]
        for earlier in lately
        for claim in earlier.claims.values()
        if claim.get("ground") == Ground.NOT_IN_GROUP
    )
    kind = SuspicionKind.SAMPLES_WITHOUT_AVERAGING
    return [
        Found(pk, kind, {"epoch": row.epoch, "stated": stated, "epochs": counts[pk] + 1})
        for pk, stated in absent.items()
        if counts[pk] + 1 >= ABSENCES
    ]


def _is_absence(verdict: Verdict) -> bool:
    return verdict.ground is Ground.NOT_IN_GROUP and verdict.state is CreditState.REJECTED


def _of_verdicts(row: EpochEvidence, verdicts: Sequence[Verdict]) -> list[Found]:
    return [
        Found(
            verdict.device_id,
            verdict.suspicion,
            {"epoch": row.epoch, "stated": verdict.claimed, "seen": verdict.samples
             if verdict.state is CreditState.CONFIRMED else 0},
        )
        for verdict in verdicts
        if verdict.suspicion is not None
    ]  # fmt: skip


def _of_rates(
    row: EpochEvidence, verdicts: Sequence[Verdict], devices: Mapping[int, Device]
) -> list[Found]:
    if row.seconds < SHORTEST_EPOCH:
        return []
    rates: dict[str, dict[int, float]] = defaultdict(dict)
    for verdict in verdicts:
        device = devices.get(verdict.device_id)
        hardware = str((device.hardware if device else {}).get("device", ""))
        if hardware:
            rates[hardware][verdict.device_id] = verdict.samples / row.seconds
    return [
        Found(
            device_id,
            SuspicionKind.IMPOSSIBLE_THROUGHPUT,
            {"epoch": row.epoch, "hardware": hardware, "samples_per_second": round(rate, 1)},
        )
        for hardware, known in rates.items()
        for device_id, rate in known.items()
        if throughput_is_impossible(rate, [r for other, r in known.items() if other != device_id])
    ]


def _of_losses(run: Run, judged: Sequence[Judged]) -> list[Found]:
    newest_row, newest, _ = max(judged, key=lambda item: (item[0].lineage, item[0].epoch))
    before = EpochEvidence.objects.filter(
        run=run, lineage=newest_row.lineage, epoch__lt=newest_row.epoch
    ).order_by("-epoch")[: LOSS_EPOCHS - 1]
    known = {row.epoch: claims for row, claims, _ in judged}
    epochs = [_losses(known.get(r.epoch) or claims_read(r.claims)) for r in reversed(before)]
    epochs.append(_losses(newest))
    found = []
    for device_id, loss in epochs[-1].items():
        series = [
            (losses[device_id], [value for other, value in losses.items() if other != device_id])
            for losses in epochs
            if device_id in losses
        ]
        if losses_are_outlying(series):
            evidence = {"epoch": newest_row.epoch, "loss": round(loss, 4)}
            found.append(Found(device_id, SuspicionKind.LOSS_OUTLIER, evidence))
    return found


def _losses(claims: Claims) -> dict[int, float]:
    return {c.device: c.loss for c in claims.values() if c.loss is not None and c.stated}
