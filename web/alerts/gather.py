"""The facts that the rules judge, read from the database."""

import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache

from training.protocol.states import PeerState, Role, RunState
from web.alerts.rules import HEARTBEAT_FRESH_SECONDS, Member, RunFacts
from web.monitoring.models import EpochRecord, Peer, RunSwarm
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import checkpoint_latest, config_newest

DIALS_KEPT_SECONDS = 300
_LOSSES = 31
_MAX_MEMBERS = 2000
_IN_SWARM = frozenset({PeerState.TRAINING, PeerState.AVERAGING})


def facts_gather(run: Run, now: datetime) -> RunFacts:
    """Return what is known of a run, in five queries."""
    is_open = run.state == RunState.OPEN
    config = config_newest(run)
    if not is_open or config is None:
        return RunFacts(is_open=False, opened_at=run.state_changed_at)
    swarm = RunSwarm.objects.filter(run=run).first()
    live = swarm.live if swarm else {}
    epochs = _epochs(run, config)
    checkpoint = checkpoint_latest(run, config.lineage)
    dials = dials_read(run)
    return RunFacts(
        is_open=True,
        opened_at=max(run.state_changed_at, _lineage_began(config)),
        heard_at=swarm.received_at if swarm else None,
        num_peers=live.get("num_peers", 0),
        min_peers=config.body["swarm"].get("min_peers", 1),
        epoch=live.get("epoch", 0),
        last_epoch_at=epochs[-1].finished_at if epochs else None,
        losses=tuple(row.loss for row in epochs),
        checkpoint_epoch=checkpoint.epoch if checkpoint else None,
        lineage_epoch=(config.body.get("start") or {}).get("epoch", 0),
        checkpoint_every=config.body.get("checkpoint", {}).get("every_epochs", 10),
        members=tuple(_members(run, now)),
        dialled=dials[0],
        dialled_at=dials[1],
    )


def disk_gather() -> tuple[int, int]:
    """Return used and total bytes of the data folder's disk, as an account without rights has it.

    Used is counted against what can be used: space kept for root is not free.
    """
    usage = shutil.disk_usage(settings.DATA_DIR)
    return usage.used, usage.used + usage.free


def dials_write(run: Run, answers: dict[str, bool], now: datetime) -> None:
    """Keep which addresses answered, for the next checks."""
    cache.set(f"alerts:dials:{run.pk}", (answers, now), timeout=DIALS_KEPT_SECONDS)


def dials_read(run: Run) -> tuple[dict[str, bool], datetime | None]:
    """Return the answers of the newest dialling and when that was; nothing when it is old."""
    found = cache.get(f"alerts:dials:{run.pk}")
    return found if found else ({}, None)


def _epochs(run: Run, config: RunConfigVersion) -> list[EpochRecord]:
    rows = EpochRecord.objects.filter(run=run, lineage=config.lineage).order_by("-epoch")
    return list(reversed(rows[:_LOSSES]))


def _lineage_began(config: RunConfigVersion) -> datetime:
    """A roll-back begins the wait for epochs anew; other versions of the config do not."""
    is_start = config.body.get("start") is not None
    return (
        config.published_at if is_start else datetime.min.replace(tzinfo=config.published_at.tzinfo)
    )


def _members(run: Run, now: datetime) -> Iterable[Member]:
    since = now - timedelta(seconds=HEARTBEAT_FRESH_SECONDS)
    rows = Peer.objects.filter(run=run, role=Role.TRAINER, heartbeat_at__gt=since)
    rows = rows.filter(device__revoked_at=None, device__user__banned_at=None)
    for peer in rows.order_by("-heartbeat_at")[:_MAX_MEMBERS]:
        if peer.heartbeat and peer.heartbeat_at and peer.heartbeat.get("state") in _IN_SWARM:
            epoch = int(peer.heartbeat.get("epoch", 0))
            yield Member(peer.heartbeat_at, epoch, peer.joined_at, peer.seen_at)
