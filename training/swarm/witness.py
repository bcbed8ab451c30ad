"""What this peer sees of others in an averaging round: who is in it, and what their parts weigh.

A sender puts its weight, the number of its samples, beside every part that it sends. Whoever
averages a part reads it there: an account of another peer's work that the peer cannot change
afterwards.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind knows streams by this very type

from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.group_info import GroupInfo
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2

MAX_SENDERS = 4096
"""Senders that are remembered; the oldest is forgotten first."""


Seen = tuple[int | None, int | None]
"""Of one member of a round: the epoch that it was in, and the samples that its parts carried."""


def round_epoch(own: int, named: Iterable[int | None]) -> int:
    """Return which epoch a round ended, by what most of its members say of theirs.

    Whoever waited for a group until the others' next round is one behind: its samples entered the
    average of their epoch, and only under that number do they know of them.
    """
    votes = Counter(epoch for epoch in named if epoch is not None)
    common = max(votes, key=lambda epoch: (votes[epoch], epoch), default=own)
    return min(max(own, common), own + 1)


class PartWeights:
    """The weight of each sender's newest parts. Lives in the averager's process."""

    def __init__(self, length: int = MAX_SENDERS) -> None:
        self._length = length
        self._seen: dict[PeerID, tuple[bytes, float]] = {}

    async def watched(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], sender: PeerID
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """Pass a sender's messages on; only the first of them names its group."""
        group_id = b""
        async for message in stream:
            group_id = group_id or message.group_id
            self.note(group_id, sender, message.weight)
            yield message

    def note(self, group_id: bytes, sender: PeerID, weight: float) -> None:
        """Remember the smallest weight: a sender may not be heavy in one part only."""
        known = self._seen.pop(sender, None)
        if known is not None and known[0] == group_id:
            weight = min(weight, known[1])
        self._seen[sender] = (group_id, weight)
        if len(self._seen) > self._length:
            del self._seen[next(iter(self._seen))]

    def of_group(self, group_id: bytes, members: Sequence[PeerID]) -> dict[PeerID, int | None]:
        """Return the samples that each member's parts carried; None: it sent none to us."""
        return {member: self._samples(group_id, member) for member in members}

    def _samples(self, group_id: bytes, member: PeerID) -> int | None:
        known = self._seen.get(member)
        if known is None or known[0] != group_id:
            return None
        return round(known[1]) if math.isfinite(known[1]) and known[1] > 0 else 0


class WitnessAverager(DecentralizedAverager):
    """An averager whose rounds end with what it saw of each member. Members gather their epochs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._weights = PartWeights()
        super().__init__(*args, **kwargs)

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        watched = self._weights.watched(stream, context.remote_id)
        async for message in super().rpc_aggregate_part(watched, context):
            yield message

    async def _aggregate_with_group(
        self, group_info: GroupInfo, *args: Any, **kwargs: Any
    ) -> dict[PeerID, Seen]:
        told = await super()._aggregate_with_group(group_info, *args, **kwargs)
        weights = self._weights.of_group(group_info.group_id, group_info.peer_ids)
        epochs = {peer: epoch for peer, epoch in told.items() if type(epoch) is int}
        return {peer: (epochs.get(peer), weight) for peer, weight in weights.items()}
