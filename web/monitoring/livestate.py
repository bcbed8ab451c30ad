"""The live state of a run: built from facts, compared, patched. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from training.protocol.api import LivePeer, LiveRun
from training.protocol.states import PeerState, Role, RunState
from web.monitoring.evidence import (
    GONE,
    PEER_FORGOTTEN_SECONDS,
    SwarmEvidence,
    peer_state,
    swarm_state,
)

State = dict[str, Any]


@dataclass(frozen=True)
class RunFacts:
    """What the site itself knows of a run."""

    slug: str
    title: str
    run_state: RunState
    run_text: str
    changed_at: datetime
    """Of the organiser's last move."""
    config_version: int = 0
    """0: none is published."""
    target_batch_size: int = 1
    min_peers: int = 1
    checkpoint_epoch: int | None = None
    heard_at: datetime | None = None
    """When the newest snapshot arrived, by the site's clock."""
    max_epochs: int | None = None


@dataclass(frozen=True)
class Figures:
    """What the newest snapshot says of the swarm, and what follows from the history."""

    as_of: datetime | None = None
    epoch: int = 0
    epoch_started_at: datetime | None = None
    """By the coordinator's clock, as ``as_of``."""
    samples_accumulated: int = 0
    samples_per_second: float = 0.0
    loss: float | None = None
    loss_at: datetime | None = None
    """Of the snapshot that said it: a later one may say none."""
    first_loss: float | None = None
    samples_total: int = 0
    samples_pending: int = 0
    """Of epochs that ended and are not reported yet, as far as they were seen."""
    pace_low: float | None = None
    """Samples per second over whole epochs (:mod:`web.monitoring.pace`)."""
    pace_high: float | None = None


def figures_of(live: LiveRun) -> Figures:
    """Return the figures that a live state was built from."""
    return Figures(
        as_of=live.as_of,
        epoch=live.epoch,
        epoch_started_at=live.epoch_started_at,
        samples_accumulated=live.samples_accumulated,
        samples_per_second=live.samples_per_second,
        loss=live.loss,
        # A state that was kept before there was this date knows no better one.
        loss_at=live.loss_at or (None if live.loss is None else live.as_of),
        first_loss=live.first_loss,
        samples_total=live.samples_total,
        samples_pending=live.samples_pending,
        pace_low=live.pace_low,
        pace_high=live.pace_high,
    )


def live_run_build(
    facts: RunFacts,
    figures: Figures,
    peers: Mapping[str, LivePeer],
    *,
    seq: int,
    now: datetime,
) -> LiveRun:
    """Return the live state as the evidence has it at ``now``."""
    evidence = evidence_of(facts, figures, peers, now=now)
    state, reason = swarm_state(evidence)
    return LiveRun(
        run=facts.slug,
        title=facts.title,
        seq=seq,
        as_of=figures.as_of,
        state=state,
        reason=reason,
        run_state=facts.run_state,
        config_version=facts.config_version,
        epoch=figures.epoch,
        epoch_started_at=figures.epoch_started_at,
        target_batch_size=facts.target_batch_size,
        samples_accumulated=figures.samples_accumulated,
        samples_total=figures.samples_total,
        samples_pending=figures.samples_pending,
        samples_per_second=figures.samples_per_second,
        loss=figures.loss,
        loss_at=figures.loss_at,
        first_loss=figures.first_loss,
        num_peers=evidence.num_peers,
        min_peers=facts.min_peers,
        checkpoint_epoch=facts.checkpoint_epoch,
        run_text=facts.run_text,
        changed_at=facts.changed_at,
        heard_at=facts.heard_at,
        max_epochs=facts.max_epochs,
        pace_low=figures.pace_low,
        pace_high=figures.pace_high,
        peers=dict(peers),
    )


def evidence_of(
    facts: RunFacts, figures: Figures, peers: Mapping[str, LivePeer], *, now: datetime
) -> SwarmEvidence:
    """Return what the state is derived from; static/js/evidence.js does the same in the browser."""
    trainers = [peer.state for peer in peers.values() if peer.role is Role.TRAINER]
    return SwarmEvidence(
        run_state=facts.run_state,
        run_text=facts.run_text,
        has_config=facts.config_version > 0,
        changed_seconds=_seconds(facts.changed_at, now) or 0.0,
        heard_seconds=_seconds(facts.heard_at, now),
        epoch=figures.epoch,
        epoch_seconds=_epoch_seconds(facts, figures),
        has_finished_epoch=figures.samples_total > 0,
        peers=tuple(trainers),
        min_peers=facts.min_peers,
        samples_accumulated=figures.samples_accumulated,
        target_batch_size=facts.target_batch_size,
        samples_per_second=figures.samples_per_second,
    )


def peers_merge(
    known: Mapping[str, LivePeer], observed: Mapping[str, LivePeer], *, as_of: datetime
) -> dict[str, LivePeer]:
    """Return the peers at ``as_of``: those of the snapshot, and for a while those that are gone."""
    merged: dict[str, LivePeer] = {}
    for key, peer in {**known, **observed}.items():
        age = max(0.0, (as_of - peer.seen_at).total_seconds())
        if age > PEER_FORGOTTEN_SECONDS:
            continue
        state = peer_state(peer.state, age, is_barred=peer.state is PeerState.BANNED)
        merged[key] = peer if state is peer.state else _at_rest(peer, state)
    return merged


def peer_moves(
    old: Mapping[str, LivePeer], new: Mapping[str, LivePeer]
) -> Iterable[tuple[str, str, LivePeer]]:
    """Return ``joined``, ``left`` or ``banned``, key and peer, for each for which that is new."""
    for key, peer in new.items():
        before = old.get(key)
        was_there = before is not None and before.state not in _OUT
        if peer.state not in _OUT:
            if not was_there:
                yield "joined", key, peer
        elif was_there:
            yield "banned" if peer.state is PeerState.BANNED else "left", key, peer
    for key, before in old.items():
        if key not in new and before.state not in _OUT:
            yield "left", key, before


def state_diff(old: State, new: State) -> State:
    """Return the patch that makes ``new`` of ``old``: changed fields with their new values.

    ``peers`` holds the changed fields of changed peers, whole new peers, and None for those that
    are gone.
    """
    patch = {
        name: value
        for name, value in new.items()
        if name != "peers" and (name not in old or old[name] != value)
    }
    peers = _peers_diff(old.get("peers", {}), new.get("peers", {}))
    if peers or ("peers" in new and "peers" not in old):
        patch["peers"] = peers
    return patch


def state_apply(state: State, patch: State) -> State:
    """Return ``state`` with a patch: what a browser does."""
    result = {**state, **patch}
    if "peers" in patch:
        peers = dict(state.get("peers", {}))
        for key, change in patch["peers"].items():
            if change is None:
                peers.pop(key, None)
            else:
                peers[key] = {**peers.get(key, {}), **change}
        result["peers"] = peers
    return result


_OUT = frozenset({PeerState.LEFT, PeerState.BANNED})


def _peers_diff(old: State, new: State) -> State:
    changes: State = {key: None for key in old if key not in new}
    for key, peer in new.items():
        before = old.get(key, {})
        change = {n: v for n, v in peer.items() if n not in before or before[n] != v}
        if change:
            changes[key] = change
    return changes


def _at_rest(peer: LivePeer, state: PeerState) -> LivePeer:
    still = {"samples_per_second": 0.0} if state in GONE else {}
    return peer.model_copy(update={"state": state, **still})


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds())


def _epoch_seconds(facts: RunFacts, figures: Figures) -> float | None:
    """Return how old the epoch was at the newest snapshot; time in a pause does not count."""
    if figures.as_of is None or figures.epoch_started_at is None:
        return None
    began = max(figures.epoch_started_at, facts.changed_at)
    return max(0.0, (figures.as_of - began).total_seconds())
