"""How far a revocation list has spread in the swarm: seen by N of M peers."""

from dataclasses import dataclass
from datetime import datetime

from training.protocol.states import Role
from web.monitoring.evidence import GONE
from web.monitoring.live import live_stored
from web.monitoring.models import Peer, RevocationList, RunSwarm
from web.monitoring.services.revocations import revocations_current
from web.runs.models import Run


@dataclass(frozen=True)
class LatePeer:
    """A trainer that does not apply the newest list yet."""

    peer: Peer
    """With ``device.user`` loaded."""
    seq: int
    """Of the list that it applies."""
    since: datetime
    """When the first list was made that it does not know."""


@dataclass(frozen=True)
class Spread:
    """For organisers: the newest list, and who applies it."""

    revoked: RevocationList
    num_peers: int
    """Verified trainers that are in the swarm now."""
    late: list[LatePeer]

    @property
    def num_seen(self) -> int:
        return self.num_peers - len(self.late)

    @property
    def seconds(self) -> float | None:
        """From the making of the list to the moment when all had it; None before that."""
        seen_at = self.revoked.seen_at
        return None if seen_at is None else (seen_at - self.revoked.made_at).total_seconds()


def revocations_spread(run: Run) -> Spread:
    """Return how far the newest list has spread, by the peers' own signed word."""
    revoked = revocations_current(run)
    swarm = RunSwarm.objects.filter(run=run).first()
    return Spread(revoked, len(_present(swarm)), peers_late(run, swarm, revoked))


def trainers_present(run: Run) -> list[str]:
    """Return the public ids of the verified trainers that are in the run's swarm now."""
    return _present(RunSwarm.objects.filter(run=run).first())


def peers_late(run: Run, swarm: RunSwarm | None, revoked: RevocationList) -> list[LatePeer]:
    """Return the verified trainers in the swarm whose list is older than ``revoked``."""
    if revoked.seq == 0:
        return []
    rows = Peer.objects.filter(
        run=run, public_id__in=_present(swarm), revocations_seq__lt=revoked.seq
    )
    late = list(rows.select_related("device__user").order_by("device__user__username", "pk"))
    if not late:
        return []
    oldest = min(row.revocations_seq for row in late)
    made = dict(run.revocation_lists.filter(seq__gt=oldest).values_list("seq", "made_at"))
    return [LatePeer(row, row.revocations_seq, _since(row, made, revoked)) for row in late]


def _since(row: Peer, made: dict[int, datetime], revoked: RevocationList) -> datetime:
    """Of the first list after the peer's own that is still kept, or of its joining if later."""
    first = min((at for seq, at in made.items() if seq > row.revocations_seq), default=None)
    return max(first or revoked.made_at, row.joined_at)


def _present(swarm: RunSwarm | None) -> list[str]:
    _, peers = live_stored(swarm)
    return [
        key
        for key, peer in peers.items()
        if peer.verified and peer.role is Role.TRAINER and peer.state not in GONE
    ]
