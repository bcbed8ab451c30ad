"""Snapshots: verified, numbered, written down in one transaction, pushed on commit."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from training.protocol.api import LivePeer, SnapshotResponse
from training.protocol.envelope import CLOCK_LEEWAY
from training.protocol.errors import ErrorCode
from training.protocol.metrics import SwarmSnapshot
from training.protocol.names import TYP_SNAPSHOT
from training.protocol.states import Role, RunState
from web.accounts.credentials import Credential
from web.accounts.models import Device
from web.contributions.suspicions import suspicions_raise
from web.core.errors import AppError
from web.monitoring.epochs import EpochNews, epochs_record, last_epoch
from web.monitoring.evidence import GONE
from web.monitoring.feed import epoch_lines, peer_lines
from web.monitoring.live import live_stored, live_write, run_lock
from web.monitoring.livestate import Figures, peers_merge
from web.monitoring.models import MetricPoint, Peer, RunSwarm
from web.monitoring.moments import moment_keep
from web.monitoring.observed import Observed, peers_observe
from web.monitoring.selectors import coordinator_device
from web.monitoring.services.revocations import (
    revocations_seen,
    revocations_signed,
    revocations_update,
)
from web.monitoring.services.settle import run_settle
from web.monitoring.spread import peers_late
from web.monitoring.timings import epochs_time
from web.monitoring.trails import trails_follow, trails_notice
from web.runs.lifecycle import RunAction
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import config_current
from web.runs.services import bootstrap_peers_mark, run_complete
from web.runs.signed import device_key, signed_open

logger = logging.getLogger(__name__)


def snapshot_ingest(credential: Credential, run: Run, jws: str, now: datetime) -> SnapshotResponse:
    """Take in what the coordinator saw.

    A snapshot whose number is not above the last one is ignored, not refused: whoever sends it
    again does not know that it arrived.

    Raises:
        AppError: NOT_JOINED, FORBIDDEN (not this run's coordinator), BAD_SIGNATURE, UNKNOWN_KEY,
            ENVELOPE_EXPIRED, BODY_INVALID or CONFIG_MISSING.
    """
    device = coordinator_device(credential, run)
    snapshot = _open(run, device, jws, now)
    observed = peers_observe(run, snapshot, now)  # signatures take time: before the lock
    with transaction.atomic():
        row, swarm = run_lock(run)
        if swarm.coordinator_id != device.pk:
            raise AppError(ErrorCode.FORBIDDEN, "Another coordinator has taken over this run.")
        config = config_current(row)
        if snapshot.lineage > config.lineage:
            raise AppError(ErrorCode.BODY_INVALID, f"lineage: the run is at {config.lineage}.")
        accepted = snapshot.seq > swarm.last_seq
        if accepted:
            if row.live_seq != observed.live_seq:  # closing a profile takes a number, too
                observed.names_hide(row)
            _accept(row, swarm, snapshot, observed, config=config, now=now)
        revoked = revocations_update(row, now)
        if accepted:
            revocations_seen(row, revoked, now, late=len(peers_late(row, swarm, revoked)))
        return SnapshotResponse(
            accepted=accepted,
            last_seq=swarm.last_seq,
            last_epoch=last_epoch(row, snapshot.lineage),
            state=RunState(row.state),
            config_version=config.version,
            revocations=revocations_signed(revoked, now),
        )


def _open(run: Run, device: Device, jws: str, now: datetime) -> SwarmSnapshot:
    snapshot = signed_open(
        jws, typ=TYP_SNAPSHOT, model=SwarmSnapshot, key=device_key(device), now=now
    ).body
    if snapshot.run != run.slug:
        raise AppError(ErrorCode.BODY_INVALID, f"run: this snapshot is of {snapshot.run}.")
    if snapshot.taken_at > now + CLOCK_LEEWAY:
        raise AppError(ErrorCode.BODY_INVALID, "taken_at: lies in the future; check the clock.")
    return snapshot


def _accept(
    run: Run,
    swarm: RunSwarm,
    snapshot: SwarmSnapshot,
    observed: Observed,
    *,
    config: RunConfigVersion,
    now: datetime,
) -> None:
    """Write everything down. The run's row is locked."""
    known, peers_before = live_stored(swarm)
    news = epochs_record(run, snapshot, observed, known, now)
    swarm.last_seq = snapshot.seq
    swarm.trails = trails_follow(swarm.trails, observed.ticks)
    suspicions_raise(run, trails_notice(swarm.trails), now)
    if snapshot.lineage < config.lineage:
        # The coordinator has not yet taken over the new config: its past counts, its present
        # is of a swarm that ends.
        swarm.save(update_fields=("last_seq", "trails"))
        return
    swarm.taken_at, swarm.received_at = snapshot.taken_at, now
    figures = _figures(snapshot, known, news)
    peers = peers_merge(peers_before, observed.peers, as_of=snapshot.taken_at)
    _history_write(
        run, snapshot, figures, peers, observed=observed, coordinator_id=swarm.coordinator_id
    )
    bootstrap_peers_mark(run, snapshot.lineage, snapshot.bootstrap_peers, now)
    events = [*epoch_lines(news.lines), *peer_lines(peers_before, peers)]
    live_write(run, swarm, now=now, figures=figures, peers=peers, events=events)
    moment_keep(run, swarm.live, lineage=snapshot.lineage, at=snapshot.taken_at)
    epochs_time(run, snapshot.lineage, observed.statements)
    _finish_if_done(run, swarm, snapshot, config=config, now=now)


def _figures(snapshot: SwarmSnapshot, known: Figures, news: EpochNews) -> Figures:
    low, high = (news.pace or (None, None)) if news.lines else (known.pace_low, known.pace_high)
    return Figures(
        as_of=snapshot.taken_at,
        epoch=snapshot.epoch,
        epoch_started_at=_epoch_started_at(snapshot, known),
        samples_accumulated=snapshot.samples_accumulated,
        samples_per_second=snapshot.samples_per_second,
        loss=snapshot.loss if snapshot.loss is not None else known.loss,
        loss_at=snapshot.taken_at if snapshot.loss is not None else known.loss_at,
        first_loss=known.first_loss if known.first_loss is not None else news.first_loss,
        samples_total=known.samples_total + news.samples,
        samples_pending=_samples_pending(snapshot, known, news),
        pace_low=low,
        pace_high=high,
    )


def _samples_pending(snapshot: SwarmSnapshot, known: Figures, news: EpochNews) -> int:
    """Between an epoch's end and its report, some seconds, its samples would be in no figure."""
    if news.lines or snapshot.epoch < known.epoch:
        return 0
    has_ended = snapshot.epoch > known.epoch and known.as_of is not None
    return known.samples_pending + (known.samples_accumulated if has_ended else 0)


def _epoch_started_at(snapshot: SwarmSnapshot, known: Figures) -> datetime:
    if known.epoch == snapshot.epoch and known.epoch_started_at is not None:
        return known.epoch_started_at
    ends = {report.epoch: report.finished_at for report in snapshot.finished_epochs}
    return min(ends.get(snapshot.epoch - 1, snapshot.taken_at), snapshot.taken_at)


def _history_write(
    run: Run,
    snapshot: SwarmSnapshot,
    figures: Figures,
    peers: dict[str, LivePeer],
    *,
    observed: Observed,
    coordinator_id: int | None,
) -> None:
    trainers = [peer for peer in peers.values() if peer.role is Role.TRAINER]
    point = MetricPoint(
        run=run,
        at=snapshot.taken_at,
        epoch=snapshot.epoch,
        loss=snapshot.loss,
        samples_per_second=snapshot.samples_per_second,
        num_peers=sum(peer.state not in GONE for peer in trainers),
        samples_total=figures.samples_total,
    )
    MetricPoint.objects.bulk_create([point], ignore_conflicts=True)
    is_seen = Q(pk__in=observed.seen) | Q(run=run, device_id=coordinator_id)
    Peer.objects.filter(is_seen).update(seen_at=snapshot.taken_at)
    _lists_write(observed)


def _lists_write(observed: Observed) -> None:
    """Keep which revocation list each peer applies; few of them change at a time."""
    moved = [row for row in observed.claimed.values()
             if observed.lists.get(row.pk, row.revocations_seq) != row.revocations_seq]  # fmt: skip
    for row in moved:
        row.revocations_seq = observed.lists[row.pk]
    Peer.objects.bulk_update(moved, ["revocations_seq"], batch_size=500)


def _finish_if_done(
    run: Run,
    swarm: RunSwarm,
    snapshot: SwarmSnapshot,
    *,
    config: RunConfigVersion,
    now: datetime,
) -> None:
    max_epochs = config.body.get("max_epochs")
    if run.state == RunState.OPEN and max_epochs and snapshot.epoch >= max_epochs:
        run_complete(run, f"{max_epochs} epochs are done", action=RunAction.FINISH)
        logger.info("run %s reached its last epoch, %d", run.slug, max_epochs)
    run_settle(run, swarm, now)
