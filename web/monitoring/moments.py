"""The swarm as it was: what a moment holds, and when the swarm turned. Pure but for two writes."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from training.protocol.api import LivePeer, LiveRun
from training.protocol.states import LiveState, Role
from web.monitoring.evidence import GONE
from web.monitoring.hardware import hardware_class
from web.monitoring.models import SwarmMoment, SwarmTurn
from web.monitoring.rollup import slot_of
from web.runs.models import Run

SLOT_SECONDS = 10
MAX_PEERS = 32
"""Rows of one moment; what the others do is in its counts and classes."""
MAX_CLASSES = 8
OTHERS: Final = "others"
UNVERIFIED: Final = "unverified"
_CONDITIONS: Final[dict[LiveState, str]] = {
    LiveState.TRAINING: "running",
    LiveState.AVERAGING: "running",
    LiveState.WARMING_UP: "running",
    LiveState.FINISHING: "finished",
}


def condition_of(state: str) -> str:
    """Return the condition that a state word belongs to: training and averaging, which take turns
    with every epoch, are one."""
    return _CONDITIONS.get(LiveState(state), state)


def classes_of(peers: Mapping[str, LivePeer]) -> dict[str, float]:
    """Return samples per second by hardware class, the largest :data:`MAX_CLASSES` by name."""
    rates: dict[str, float] = defaultdict(float)
    for peer in _present(peers):
        name = hardware_class(peer.hardware) if peer.verified else UNVERIFIED
        rates[name] += peer.samples_per_second
    ranked = sorted(rates.items(), key=lambda pair: (-pair[1], pair[0]))
    classes = {name: round(rate, 2) for name, rate in ranked[:MAX_CLASSES]}
    if len(ranked) > MAX_CLASSES:
        classes[OTHERS] = round(sum(rate for _, rate in ranked[MAX_CLASSES:]), 2)
    return classes


def moment_of(run: Run, live: LiveRun, *, lineage: int, at: datetime) -> SwarmMoment:
    """Return a live state as it is kept; not stored."""
    trainers = {key: peer for key, peer in live.peers.items() if peer.role is Role.TRAINER}
    ranked = sorted(trainers.items(), key=lambda pair: (-pair[1].samples_per_second, pair[0]))
    slot = datetime.fromtimestamp(slot_of(at, SLOT_SECONDS) * SLOT_SECONDS, UTC)
    return SwarmMoment(
        run=run,
        at=slot,
        lineage=lineage,
        epoch=live.epoch,
        state=live.state,
        loss=live.loss if live.loss_at in (None, live.as_of) else None,
        samples_per_second=live.samples_per_second,
        samples_total=live.samples_total,
        num_peers=live.num_peers,
        counts=dict(Counter(str(peer.state) for peer in trainers.values())),
        classes=classes_of(trainers),
        peers=[_row(key, peer) for key, peer in ranked[:MAX_PEERS]],
    )


def moment_keep(run: Run, live: Mapping[str, Any], *, lineage: int, at: datetime) -> None:
    """Store the swarm as of ``at``, unless its ten seconds have a moment already."""
    moment = moment_of(run, LiveRun.model_validate(live), lineage=lineage, at=at)
    SwarmMoment.objects.bulk_create([moment], ignore_conflicts=True)


def turn_note(run: Run, old: Mapping[str, Any], new: Mapping[str, Any], now: datetime) -> None:
    """Store that the swarm went over to another condition, if it did."""
    before = condition_of(old["state"]) if old else ""
    after = condition_of(new["state"])
    if after != before:
        SwarmTurn.objects.create(run=run, at=now, condition=after, reason=new["reason"][:300])


def _present(peers: Mapping[str, LivePeer]) -> list[LivePeer]:
    return [p for p in peers.values() if p.state not in GONE and p.role is Role.TRAINER]


def _row(key: str, peer: LivePeer) -> list[Any]:
    name = hardware_class(peer.hardware) if peer.verified else UNVERIFIED
    return [key, str(peer.state), peer.epoch, round(peer.samples_per_second, 2), name]
