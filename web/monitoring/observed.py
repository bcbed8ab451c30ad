"""Peers of a snapshot: whose they are, and whether their numbers are signed."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from django.db.models import F

from training.protocol.api import LivePeer
from training.protocol.envelope import CLOCK_LEEWAY, EnvelopeError, Signed, peek_body, verify
from training.protocol.keys import key_load
from training.protocol.metrics import PeerMetrics, PeerObservation, SwarmSnapshot
from training.protocol.names import TYP_METRICS
from training.protocol.states import PeerState, Reach, Role
from web.accounts.names import HIDDEN_NAME, public_name
from web.contributions.claims import Member, Statement
from web.contributions.detectors import Tick
from web.contributions.services import NOBODY, barred_reason
from web.monitoring.models import Peer
from web.runs.models import Run
from web.runs.selectors import Barred, run_barred

SITE_NAME = "This site"
"""Whose the managed trainers are."""
UNVERIFIED_NAME = "unverified peer"
_KEPT_MESSAGES = 8192
"""Checked messages that are remembered; above the largest number of peers of one snapshot."""


@dataclass
class Observed:
    """A snapshot's peers, with the accounts behind them."""

    claimed: dict[str, Peer] = field(default_factory=dict)
    """By key thumbprint, also of peers that only finished epochs name."""
    peers: dict[str, LivePeer] = field(default_factory=dict)
    """By public id; peers whose signed numbers are out of date are left out."""
    seen: list[int] = field(default_factory=list)
    """Keys of the Peer rows that the snapshot shows with good signatures."""
    statements: list[Statement] = field(default_factory=list)
    """What trainers signed, also when it is out of date: it says what was."""
    ticks: dict[int, Tick] = field(default_factory=dict)
    """The same in short, by device."""
    lists: dict[int, int] = field(default_factory=dict)
    """Number of the revocation list that each of those applies."""
    live_seq: int = 0
    """The run's number when the names were read."""
    barred: Barred = NOBODY
    """Who is shut out of the run."""

    @property
    def members(self) -> dict[str, Member]:
        """Whose the claimed keys are, by key thumbprint."""
        return {thumbprint: member_of(peer) for thumbprint, peer in self.claimed.items()}

    def names_hide(self, run: Run) -> None:
        """Take out the names of accounts that have closed their profile since they were read.

        The run is locked by now, and whoever closes a profile needs that lock too.
        """
        closed = Peer.objects.filter(run=run, device__user__is_profile_public=False)
        self.peers = peers_hide(self.peers, set(closed.values_list("public_id", flat=True)))


def peers_observe(run: Run, snapshot: SwarmSnapshot, now: datetime) -> Observed:
    """Return the peers of a snapshot, in two queries."""
    thumbprints = {peer.key_thumbprint for peer in snapshot.peers}
    for report in snapshot.finished_epochs:
        thumbprints |= {w.key_thumbprint for w in (*report.work, *report.discarded)}
    rows = Peer.objects.filter(run=run, key_thumbprint__in=thumbprints)
    observed = Observed(barred=run_barred(run))
    for row in rows.select_related("device__user").annotate(run_seq=F("run__live_seq")):
        observed.claimed[row.key_thumbprint] = row
        observed.live_seq = row.run_seq
    for seen in snapshot.peers:
        _observe(observed, run, snapshot, seen, now)
    return observed


def _observe(
    observed: Observed, run: Run, snapshot: SwarmSnapshot, seen: PeerObservation, now: datetime
) -> None:
    peer = observed.claimed.get(seen.key_thumbprint)
    if peer is None:
        observed.peers[anonymous_id(run, seen.key_thumbprint)] = _unverified(seen)
        return
    signed = _signed_metrics(seen.jws, json.dumps(peer.device.jwk)) if seen.jws else None
    if signed is None or not _is_about(signed, peer, snapshot, now):
        observed.peers[peer.public_id] = _unverified(seen)
        return
    if signed.body.role is Role.TRAINER:
        observed.statements.append(Statement(member_of(peer), signed.body))
        observed.ticks[peer.device_id] = _tick(signed.body, seen)
    if signed.expires_at > now:
        is_barred = bool(barred_reason(peer.device, observed.barred))
        observed.peers[peer.public_id] = _verified(seen, peer, signed.body, is_barred=is_barred)
        observed.seen.append(peer.pk)
        observed.lists[peer.pk] = signed.body.revocations_seq


def _tick(metrics: PeerMetrics, seen: PeerObservation) -> Tick:
    at = metrics.taken_at.timestamp()
    late = seen.seen_at.timestamp() - at
    return Tick(at, metrics.samples_total, metrics.samples_per_second, round(late, 1))


def peers_hide(peers: Mapping[str, LivePeer], keys: Collection[str]) -> dict[str, LivePeer]:
    """Return the rows with nothing about whose those with these public ids are."""
    hidden = {"name": HIDDEN_NAME, "device": ""}
    return {
        key: peer.model_copy(update=hidden)
        if key in keys and peer.verified and not peer.managed
        else peer
        for key, peer in peers.items()
    }


def member_of(peer: Peer) -> Member:
    """Return whose a peer is, as the counting takes it."""
    return Member(peer.device_id, peer.device.user_id, peer.peer_id, peer.heartbeat_at)


def anonymous_id(run: Run, thumbprint: str) -> str:
    """Return a public id for a peer that no account claims."""
    return f"x{hashlib.sha256(f'{run.slug}:{thumbprint}'.encode()).hexdigest()[:11]}"


@lru_cache(maxsize=_KEPT_MESSAGES)
def _signed_metrics(token: str, jwk_json: str) -> Signed[PeerMetrics] | None:
    """Return the message when the device signed it. Whether it is current is not asked here."""
    try:
        issued_at = datetime.fromtimestamp(int(peek_body(token)["iat"]), UTC)
        keys = [key_load(jwk_json)]
        return verify(token, typ=TYP_METRICS, model=PeerMetrics, keys=keys, now=issued_at)
    except (EnvelopeError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _is_about(
    signed: Signed[PeerMetrics], peer: Peer, snapshot: SwarmSnapshot, now: datetime
) -> bool:
    """Whether a message speaks of this peer in this swarm, and is not from the future."""
    body = signed.body
    return (body.run, body.lineage, body.peer_id) == (
        snapshot.run,
        snapshot.lineage,
        peer.peer_id,
    ) and signed.issued_at <= now + CLOCK_LEEWAY


def _unverified(seen: PeerObservation) -> LivePeer:
    return LivePeer(
        name=UNVERIFIED_NAME,
        state=PeerState.TRAINING,
        reach=seen.reach,
        epoch=seen.epoch,
        samples_accumulated=seen.samples_accumulated,
        samples_per_second=seen.samples_per_second,
        loss=seen.loss,
        seen_at=seen.seen_at,
    )


def _verified(
    seen: PeerObservation, peer: Peer, metrics: PeerMetrics, *, is_barred: bool
) -> LivePeer:
    device, user = peer.device, peer.device.user
    hardware: Mapping[str, object] = peer.hardware
    return LivePeer(
        name=SITE_NAME if user.is_service else public_name(user),
        device=device.name if user.is_profile_public else "",
        role=Role(peer.role),
        managed=user.is_service,
        verified=True,
        state=PeerState.BANNED if is_barred else metrics.state,
        reach=Reach.CLIENT if metrics.client_mode else seen.reach,
        hardware=str(hardware.get("device", "")),
        version=metrics.trainer_version or peer.trainer_version,
        epoch=metrics.epoch,
        samples_accumulated=metrics.samples_accumulated,
        samples_per_second=metrics.samples_per_second,
        loss=metrics.loss,
        seen_at=seen.seen_at,
    )
