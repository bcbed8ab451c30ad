"""A run with history, as pages meet it: config, peers, epochs, ledger, events, checkpoint."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from tests.factories import device_make
from tests.factories_ledger import FinishedEpoch, Work, epochs_credit
from training.protocol.api import LivePeer
from training.protocol.states import PeerState, Reach, Role
from web.accounts.models import Device, User
from web.monitoring.feed import EventLine
from web.monitoring.live import live_write, run_lock
from web.monitoring.livestate import Figures
from web.monitoring.models import EpochRecord, MetricPoint, Peer
from web.runs.models import Checkpoint, Run
from web.runs.services import run_config_publish, run_create, run_transition
from web.workers.models import Evaluation, EvaluationJob

TARGET = 4096
DRAFT: dict[str, Any] = {
    "title": "Python docs",
    "task": {"name": "albert", "params": {"hidden_size": 128, "num_hidden_layers": 4}},
    "swarm": {"target_batch_size": TARGET},
}


def run_open(alice: User, slug: str = "python-docs", **fields: Any) -> Run:
    """Return an open run with a signed config."""
    fields = {
        "title": "Python docs",
        "summary": "A small ALBERT that learns Python's own documentation.",
    } | fields
    run = run_create(alice, slug=slug, **fields)
    run_config_publish(alice, run, DRAFT | {"title": fields["title"]})
    return run_transition(alice, run, "open")


def peer_make(run: Run, device: Device, *, index: int = 0, seen_at: datetime | None = None) -> Peer:
    """Return a device's membership in a run, seen just now."""
    now = seen_at or timezone.now()
    return Peer.objects.create(
        run=run,
        device=device,
        peer_id=f"QmPeer{index:02d}{device.public_id}",
        key_thumbprint=f"{index:02d}{device.public_id}".ljust(64, "0"),
        swarm_public_key="",
        role=Role.TRAINER,
        joined_at=now,
        heartbeat_at=now,
        seen_at=now,
    )


def live_peer(peer: Peer, **fields: Any) -> LivePeer:
    """Return a row of the peers table."""
    given: dict[str, Any] = {
        "name": peer.device.user.username,
        "device": peer.device.name,
        "managed": peer.device.user.is_service,
        "verified": True,
        "state": PeerState.TRAINING,
        "reach": Reach.DIRECT,
        "hardware": "cpu",
        "version": "0.1.0",
        "epoch": 0,
        "samples_accumulated": 0,
        "samples_per_second": 40.0,
        "loss": 5.2,
        "seen_at": timezone.now(),
    }
    return LivePeer(**(given | fields))


def history_make(run: Run, devices: list[Device], epochs: int, *, until: datetime) -> None:
    """Write finished epochs of 20 s each: points, records, ledger."""
    finished, points, records = [], [], []
    for epoch in range(epochs):
        at = until - timedelta(seconds=20 * (epochs - epoch))
        loss = 5.0 + 3.4 * math.exp(-epoch / max(epochs / 3, 1)) + 0.06 * math.sin(epoch * 2.1)
        work = tuple(
            Work(device, TARGET // len(devices) + 11 * index)
            for index, device in enumerate(devices)
        )
        total = sum(item.samples for item in work)
        finished.append(FinishedEpoch(epoch, at, 20.0, work))
        records.append(
            EpochRecord(run=run, lineage=1, epoch=epoch, finished_at=at, seconds=20,
                        samples=total, num_peers=len(devices), loss=loss)
        )  # fmt: skip
        points.append(
            MetricPoint(run=run, at=at, epoch=epoch, loss=loss, num_peers=len(devices),
                        samples_per_second=total / 20 * (1 + 0.08 * math.sin(epoch)),
                        samples_total=total * (epoch + 1))
        )  # fmt: skip
    epochs_credit(run, 1, finished)
    EpochRecord.objects.bulk_create(records)
    MetricPoint.objects.bulk_create(points)


def live_make(
    run: Run, peers: dict[str, LivePeer], *, epoch: int, now: datetime, **fields: Any
) -> None:
    """Store and push a live state, as the ingest of a snapshot does."""
    row, swarm = run_lock(run)
    swarm.taken_at = swarm.received_at = now
    rate = sum(peer.samples_per_second for peer in peers.values())
    done = sum(p.samples_accumulated for p in peers.values() if p.epoch == epoch)
    given: dict[str, Any] = {
        "as_of": now,
        "epoch": epoch,
        "epoch_started_at": now - timedelta(seconds=9),
        "samples_accumulated": done,
        "samples_per_second": rate,
        "loss": 5.213,
        "loss_at": now,
        "first_loss": 8.402,
        "samples_total": TARGET * epoch,
    }
    events = fields.pop("events", ())
    live_write(row, swarm, now=now, figures=Figures(**(given | fields)), peers=peers, events=events)


def evaluations_make(run: Run, epochs: Iterable[int], lineage: int = 1) -> None:
    """Write finished evaluations of checkpoints, whose figures get better."""
    now = timezone.now()
    for epoch in epochs:
        job = EvaluationJob.objects.create(
            run=run, lineage=lineage, epoch=epoch, config_version=1, state="done", asked_at=now,
            finished_at=now, node="site", seconds=3.0, num_samples=64,
        )  # fmt: skip
        share = 1 - math.exp(-epoch / 20) * (0.9 if lineage == 1 else 0.8)
        figures = {"mlm_loss": 8 - 6 * share, "mlm_accuracy": 0.6 * share, "sop_accuracy": 0.5}
        Evaluation.objects.bulk_create(
            Evaluation(job=job, metric=metric, value=value) for metric, value in figures.items()
        )


def run_scene(alice: User, people: list[User], *, epochs: int = 30) -> Run:
    """Return an open run in which everybody trains with one machine."""
    run, now = run_open(alice), timezone.now()
    devices = [
        device_make(user, f"{user.username}-box", hardware={"device": "cpu", "cpus": 8})[0]
        for user in people
    ]
    members = [peer_make(run, device, index=i) for i, device in enumerate(devices)]
    history_make(run, devices, epochs, until=now)
    Checkpoint.objects.create(
        run=run, lineage=1, epoch=epochs, config_version=1, manifest="x.y.z", saved_at=now,
        files=[{"name": "model.safetensors", "sha256": "ab" * 32, "size": 6_400_000}],
    )  # fmt: skip
    rows = {
        member.public_id: live_peer(member, epoch=epochs, samples_accumulated=500 + 250 * i)
        for i, member in enumerate(members)
    }
    lines = [EventLine("epoch.finished", f"Epoch {epochs - 1} finished: 4,096 samples")]
    live_make(run, rows, epoch=epochs, now=now, events=lines)
    return run
