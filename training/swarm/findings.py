"""What stood out in averaging rounds, for the log and for the person at the machine."""

import logging
from dataclasses import dataclass, field

import torch
from hivemind.p2p import PeerID

from training.swarm.clipping import Limits

_log = logging.getLogger(__name__)


@dataclass
class Findings:
    """Peers that stood out in one round, with the number of parts."""

    left_out: dict[PeerID, int] = field(default_factory=dict)
    clipped: dict[PeerID, int] = field(default_factory=dict)
    cut_weights: dict[PeerID, int] = field(default_factory=dict)
    refused: dict[PeerID, int] = field(default_factory=dict)

    def add(self, kind: dict[PeerID, int], peer: PeerID) -> None:
        kind[peer] = kind.get(peer, 0) + 1

    def tell(self, prefix: str | None) -> None:
        """Write a log line for each peer that stood out."""
        for kind, text in (
            (self.left_out, "sent values that are not finite; left out of %d parts"),
            (self.clipped, "sent values far from the others'; cut in %d parts"),
            (self.cut_weights, "claimed an implausible weight in %d parts; cut"),
            (self.refused, "gave back an implausible average of %d parts; own values kept"),
        ):
            for peer, count in kind.items():
                _log.warning(f"%s: peer %s {text}", prefix, peer, count)


class RoundGuard:
    """Limits of an averager, and what they had to do in its last round.

    Made before the averager's process is forked: the counts lie in memory that both share.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._counts = torch.zeros(4, dtype=torch.int64).share_memory_()

    def note(self, findings: Findings) -> None:
        """Add what one round found."""
        found = (findings.left_out, findings.clipped, findings.cut_weights, findings.refused)
        for place, peers in enumerate(found):
            self._counts[place] += len(peers)

    def taken(self) -> tuple[str, ...]:
        """Return in words what was found since the last call."""
        counts = self._counts.tolist()
        self._counts.zero_()
        texts = (
            "sent values that are not finite: left out",
            "sent values far from what the others sent: cut",
            "claimed more samples than an epoch has: cut",
            "gave back an average that cannot be right: own values kept",
        )
        return tuple(
            f"{count} peer{'s' if count > 1 else ''} {text}"
            for count, text in zip(counts, texts, strict=True)
            if count
        )
