"""Asks peers for their training state, one after the other, until somebody gives a usable one.

hivemind's own download takes the first peer's answer, whatever it is and however long, so that
one bad peer with a high priority keeps everybody from ever getting a state.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hivemind.averaging import DecentralizedAverager
from hivemind.compression import deserialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import aiter_with_timeout
from hivemind.utils.streaming import combine_from_streaming
from hivemind.utils.timed_storage import ValueWithExpiration
from torch import Tensor

_log = logging.getLogger(__name__)
_SPARE_BYTES = 1 << 20
_LIST_SECONDS = 15.0


@dataclass(frozen=True)
class StateOffer:
    """A state as it came, unchecked."""

    peer: str
    metadata: dict[str, Any]
    tensors: list[Tensor]
    """None at all when there was more than a model like ours can have."""


async def state_download(
    averager: DecentralizedAverager,
    *,
    avoid: Collection[str],
    min_epoch: int,
    max_bytes: int,
    failed: Counter[PeerID],
) -> StateOffer | None:
    """Return the first whole answer of a peer that is not to be avoided; None without one.

    Runs in the averager's process. Peers that say they have less than ``min_epoch`` are skipped
    after their first message; those that send more than ``max_bytes`` are listened to no longer.

    Args:
        failed: how often a peer began and did not finish, or was too slow; it is updated. The
            others are asked before it: one that never ends must not keep us from the rest.
    """
    donors = await _donors(averager)
    for peer in set(failed) - set(donors):
        del failed[peer]
    for peer in sorted(donors, key=lambda donor: failed[donor]):
        if peer == averager.peer_id or peer.to_base58() in avoid:
            continue
        failed[peer] += 1  # until it has answered; we may be cancelled meanwhile
        try:
            offer = await _download(averager, peer, min_epoch, max_bytes)
        except Exception as error:  # noqa: BLE001 - whatever it was, the next peer may do better
            _log.warning("%s: no state from %s: %r", averager.prefix, peer, error)
            continue
        del failed[peer]
        if offer is not None:
            return offer
    return None


async def _donors(averager: DecentralizedAverager) -> list[PeerID]:
    """Return who offers a state, those with the newest first."""
    key = f"{averager.prefix}.all_averagers"
    future = averager.dht.get(key, latest=True, return_future=True)
    found = await asyncio.wait_for(future, _LIST_SECONDS)
    entries = found.value if found is not None and isinstance(found.value, dict) else {}
    ranks: dict[PeerID, tuple[float, float]] = {}
    for name, entry in entries.items():
        if isinstance(entry, ValueWithExpiration) and isinstance(entry.value, float | int):
            # At random among equals: not all newcomers shall ask the same peer.
            ranks[PeerID(name)] = (float(entry.value), random.random())  # noqa: S311
    return sorted(ranks, key=lambda peer: ranks[peer], reverse=True)


async def _download(
    averager: DecentralizedAverager, peer: PeerID, min_epoch: int, max_bytes: int
) -> StateOffer | None:
    stub = averager.get_stub(averager._p2p, peer, namespace=averager.prefix)
    stream = await stub.rpc_download_state(averaging_pb2.DownloadRequest())
    limit = averager.next_chunk_timeout or averager.request_timeout
    metadata: dict[str, Any] | None = None
    parts: list[Any] = []
    tensors: list[Tensor] = []
    size = 0
    async for message in aiter_with_timeout(stream, timeout=limit):
        if message.metadata and metadata is None:
            metadata = averager.serializer.loads(message.metadata)
            if not isinstance(metadata, dict) or not isinstance(metadata.get("epoch"), int):
                raise ValueError("its description is malformed")
            if metadata["epoch"] < min_epoch:
                return None
        size += len(message.tensor_part.buffer)
        if size > max_bytes:
            return StateOffer(peer.to_base58(), metadata or {}, [])
        if message.tensor_part.dtype and parts:
            tensors.append(deserialize_torch_tensor(combine_from_streaming(parts)))
            parts = []
        parts.append(message.tensor_part)
    if metadata is None or not parts:
        return None
    tensors.append(deserialize_torch_tensor(combine_from_streaming(parts)))
    return StateOffer(peer.to_base58(), metadata, tensors)


def bytes_allowed(tensors: list[Tensor]) -> int:
    """Return how large a state like these tensors may be on the wire, uncompressed."""
    return sum(tensor.numel() * 4 for tensor in tensors) * 2 + _SPARE_BYTES
