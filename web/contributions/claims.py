"""A device's claim to samples of an epoch, as it grows from report to report. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field

from training.protocol.metrics import EpochReport, PeerMetrics, RoundSeen
from web.contributions.proofs import Proof

HEARD_WITHIN = timedelta(minutes=3)
"""A heartbeat that is older than this at an epoch's end does not speak for it."""


class Claim(BaseModel):
    """What is known of one device in one epoch; kept as JSON until the epoch is settled."""

    device: int
    user: int
    recorded: int | None = None
    reported: int | None = None
    discarded: int = 0
    stated: int | None = None
    covered: bool = False
    size: int | None = None
    weights: dict[str, int | None] = Field(default_factory=dict)
    most: int | None = None
    heard: bool = False
    loss: float | None = None
    judged: int | None = None
    """Samples of the newest verdict."""
    ground: str = ""
    attested: int = 0
    witnesses: int = 0

    def proof(self, peer_id: str, *, barred: str, held: str, is_trusted: bool) -> Proof:
        """Return the claim as the rule takes it."""
        return Proof(
            device_id=self.device,
            user_id=self.user,
            peer_id=peer_id,
            recorded=self.recorded,
            reported=self.reported,
            discarded=self.discarded,
            stated=self.stated,
            is_covered=self.covered,
            group_size=self.size,
            weights=self.weights,
            most=self.most,
            is_heard=self.heard,
            barred=barred,
            held=held,
            is_trusted=is_trusted,
        )


@dataclass(frozen=True)
class Member:
    """Whose a swarm key is."""

    device_id: int
    user_id: int
    peer_id: str
    heartbeat_at: datetime | None = None


@dataclass(frozen=True)
class Statement:
    """A device's signed report; its signature was checked."""

    member: Member
    metrics: PeerMetrics

    def names(self, epoch: int) -> int | None:
        """Return the samples that it states for an epoch; None when it does not name it."""
        return next((r.samples for r in self.metrics.recent if r.epoch == epoch), None)

    def round_of(self, epoch: int) -> RoundSeen | None:
        """Return its account of the averaging round that ended an epoch."""
        return next((r for r in self.metrics.rounds if r.epoch == epoch), None)


Claims = dict[str, Claim]
"""By peer id."""


def claims_read(kept: Mapping[str, Any]) -> Claims:
    """Return claims as they were kept as JSON."""
    return {peer_id: Claim.model_validate(body) for peer_id, body in kept.items()}


def claims_of_report(report: EpochReport, members: Mapping[str, Member]) -> Claims:
    """Return the claims that a coordinator's report makes; ``members`` by key thumbprint."""
    claims: Claims = {}
    for item in report.work:
        if item.key_thumbprint in members:
            claim = _claim(claims, members[item.key_thumbprint])
            claim.recorded, claim.reported = item.recorded, item.samples
            claim.heard |= _is_heard(members[item.key_thumbprint], report.finished_at)
    for item in report.discarded:
        if item.key_thumbprint in members:
            _claim(claims, members[item.key_thumbprint]).discarded = item.samples
    return claims


def claims_add(claims: Claims, statement: Statement, epoch: int, finished_at: datetime) -> bool:
    """Write down what a signed report says of an epoch; return whether anything was new.

    What a device once signed stands: of two numbers the smaller one, and naming outlives silence
    (a trainer that starts anew knows nothing of before).
    """
    if not statement.metrics.covers(epoch):
        return False
    member, stated = statement.member, statement.names(epoch)
    is_new = member.peer_id not in claims
    if is_new and (not stated or any(c.device == member.device_id for c in claims.values())):
        return False  # nothing to judge, or the device has another name since
    claim = _claim(claims, member)
    before = claim.model_copy()
    claim.covered = True
    if stated is not None:
        claim.stated = stated if claim.stated is None else min(stated, claim.stated)
        claim.most = max(statement.metrics.samples_total, claim.most or 0)
        if epoch == max(r.epoch for r in statement.metrics.recent):
            claim.loss = statement.metrics.loss
    seen = statement.round_of(epoch)
    if seen is not None and claim.size is None:
        claim.size, claim.weights = seen.group_size, dict(seen.weights)
    claim.heard |= _is_heard(member, finished_at)
    return claim != before


def _is_heard(member: Member, finished_at: datetime) -> bool:
    at = member.heartbeat_at
    return at is not None and at >= finished_at - HEARD_WITHIN


def _claim(claims: Claims, member: Member) -> Claim:
    new = Claim(device=member.device_id, user=member.user_id)
    return claims.setdefault(member.peer_id, new)
