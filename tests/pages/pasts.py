"""A run with a past: two lineages, incidents, moments of its swarm, and how epochs were spent."""

import math
from datetime import timedelta

from django.utils import timezone

from tests.pages.scenes import run_scene
from web.accounts.models import User
from web.monitoring.models import EpochRecord, Peer, SwarmMoment, SwarmTurn
from web.runs.models import Run

MOMENTS = 60
"""Ten seconds apart, up to now."""


def past_scene(alice: User, people: list[User]) -> Run:
    """Return the usual run, as if it had been rolled back to epoch 12 after its 30th."""
    run = run_scene(alice, people)
    _lineage_add(run)
    _spent_fill(run)
    keys = list(Peer.objects.filter(run=run).values_list("public_id", flat=True))
    now = timezone.now().replace(microsecond=0)
    SwarmMoment.objects.bulk_create(_moment(run, keys, i) for i in range(MOMENTS))
    SwarmTurn.objects.filter(run=run).delete()
    SwarmTurn.objects.bulk_create(
        SwarmTurn(run=run, at=now - timedelta(seconds=ago), condition=condition, reason=reason)
        for ago, condition, reason in (
            (590, "running", "training: epoch 0, 2 peers, 3 % of the batch"),
            (330, "stalled", "stalled: no epoch for 5 min, 1 peer"),
            (240, "running", "training: epoch 14, 2 peers, 60 % of the batch"),
        )
    )
    return run


def _lineage_add(run: Run) -> None:
    first = EpochRecord.objects.filter(run=run, lineage=1, epoch__gte=12).order_by("epoch")
    EpochRecord.objects.bulk_create(
        EpochRecord(run=run, lineage=2, epoch=record.epoch, seconds=18, samples=record.samples,
                    num_peers=2, loss=(record.loss or 0) * 0.8,
                    finished_at=record.finished_at + timedelta(seconds=7))
        for record in first
    )  # fmt: skip


def _spent_fill(run: Run) -> None:
    records = list(EpochRecord.objects.filter(run=run))
    for record in records:
        record.num_timed, record.num_averaged = 2, 1 if record.epoch % 7 == 3 else 2
        record.computing_seconds = 13 + math.sin(record.epoch)
        record.matchmaking_seconds, record.averaging_seconds = 1.5, 2.5 + record.epoch % 3
        record.waiting_seconds = 0.7
    EpochRecord.objects.bulk_update(
        records, ["num_timed", "num_averaged", "computing_seconds", "matchmaking_seconds",
                  "averaging_seconds", "waiting_seconds"],
    )  # fmt: skip


def _moment(run: Run, keys: list[str], index: int) -> SwarmMoment:
    at = timezone.now().replace(microsecond=0) - timedelta(seconds=10 * (MOMENTS - index))
    num_peers = 1 if 26 <= index < 36 else 2
    rates = [40.0 + 5 * math.sin(index), 160.0 + 20 * math.cos(index / 3)][:num_peers]
    classes = ["CPU", "RTX 30 series"]
    return SwarmMoment(
        run=run,
        at=at,
        lineage=1 if index < 40 else 2,
        epoch=index // 2,
        state="training",
        loss=8.4 - index * 0.05,
        samples_per_second=sum(rates),
        samples_total=index * 2000,
        num_peers=num_peers,
        counts={"training": num_peers},
        classes=dict(zip(classes, rates, strict=False)),
        peers=[
            [key, "training", index // 2, rate, name]
            for key, rate, name in zip(keys, rates, classes, strict=False)
        ],
    )
