"""Finished epochs of a snapshot: written to the history and to the ledger, each once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from training.protocol.metrics import EpochReport, SwarmSnapshot
from training.protocol.states import RunState
from web.contributions.accounting import epoch_seconds
from web.contributions.settlement import Finished, epochs_settle
from web.monitoring.feed import EpochLine
from web.monitoring.livestate import Figures
from web.monitoring.models import EpochRecord
from web.monitoring.observed import Observed
from web.monitoring.pace import pace_range
from web.runs.models import Run

PACE_EPOCHS = 30
"""So many epochs say how fast a run is; raise it when the time that is left jumps about."""


@dataclass(frozen=True)
class EpochNews:
    """What the finished epochs of a snapshot add."""

    lines: list[EpochLine]
    samples: int
    first_loss: float | None
    """Of the oldest new epoch that has one."""
    pace: tuple[float, float] | None = None
    """Of the last epochs, these included (:func:`web.monitoring.pace.pace_range`)."""


def epochs_record(
    run: Run, snapshot: SwarmSnapshot, observed: Observed, known: Figures, now: datetime
) -> EpochNews:
    """Write down the finished epochs that are new, and what the peers' signed reports say of
    those that are not settled yet. The caller holds the lock of the run."""
    reports = _reports_new(run, snapshot)
    earlier = _earlier(run, snapshot.lineage, reports[0].epoch) if reports else []
    lines = _lines(run, reports, earlier[0] if earlier else None, known)
    EpochRecord.objects.bulk_create([_record(run, snapshot.lineage, line) for line in lines])
    epochs_settle(
        run,
        snapshot.lineage,
        finished=[Finished(line.report, line.seconds) for line in lines],
        members=observed.members,
        statements=observed.statements,
        now=now,
    )
    losses = (line.report.loss for line in lines if line.report.loss is not None)
    worked = [(line.samples, line.seconds) for line in reversed(lines)]
    worked += [(row.samples, row.seconds) for row in earlier]
    return EpochNews(
        lines,
        samples=sum(line.samples for line in lines),
        first_loss=next(losses, None),
        pace=pace_range(worked[:PACE_EPOCHS]),
    )


def last_epoch(run: Run, lineage: int) -> int | None:
    """Return the newest finished epoch in the history."""
    records = EpochRecord.objects.filter(run=run, lineage=lineage).order_by("-epoch")
    return records.values_list("epoch", flat=True).first()


def _reports_new(run: Run, snapshot: SwarmSnapshot) -> list[EpochReport]:
    reports = {report.epoch: report for report in snapshot.finished_epochs}
    if not reports:
        return []
    records = EpochRecord.objects.filter(run=run, lineage=snapshot.lineage).order_by()
    old = set(records.filter(epoch__in=list(reports)).values_list("epoch", flat=True))
    return [reports[epoch] for epoch in sorted(set(reports) - old)]


def _lines(
    run: Run, reports: Sequence[EpochReport], last: EpochRecord | None, known: Figures
) -> list[EpochLine]:
    opened_at = run.state_changed_at if run.state == RunState.OPEN else None
    before = (last.epoch, last.finished_at) if last else None
    lines: list[EpochLine] = []
    for report in reports:
        began = before[1] if before else _first_began(report, known)
        seconds = epoch_seconds(report.finished_at, began, opened_at)
        if before is not None:  # epochs that nobody saw end took their part of the time
            seconds /= max(1, report.epoch - before[0])
        samples = sum(work.samples for work in report.work)
        lines.append(EpochLine(report, samples, report.num_peers or len(report.work), seconds))
        before = (report.epoch, report.finished_at)
    return lines


def _earlier(run: Run, lineage: int, epoch: int) -> list[EpochRecord]:
    """Return the last epochs before one, the newest first."""
    records = EpochRecord.objects.filter(run=run, lineage=lineage, epoch__lt=epoch)
    return list(records.order_by("-epoch")[:PACE_EPOCHS])


def _first_began(report: EpochReport, known: Figures) -> datetime | None:
    return known.epoch_started_at if known.epoch == report.epoch else None


def _record(run: Run, lineage: int, line: EpochLine) -> EpochRecord:
    return EpochRecord(
        run=run,
        lineage=lineage,
        epoch=line.report.epoch,
        finished_at=line.report.finished_at,
        seconds=line.seconds,
        samples=line.samples,
        num_peers=line.num_peers,
        loss=line.report.loss,
    )
