"""Peers that this one is connected to, their addresses, and the way back to lost ones."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from hivemind import DHT
from hivemind.dht.node import DHTNode
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.control import P2PDaemonError
from hivemind.utils.multiaddr import Multiaddr

from training.protocol.names import progress_key

_CONNECT_SECONDS = 3.0


def neighbours_read(dht: DHT, *, timeout: float) -> dict[str, list[str]]:
    """Return the multiaddresses (with ``/p2p/``) of connected peers, by peer id.

    Of a peer that called us this is the address it called from. libp2p calls from the port it
    listens on, so that is its own address unless something in between changes ports.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    return dict(dht.run_coroutine(_connected, return_future=True).result(timeout))


def neighbours_rejoin(dht: DHT, addresses: Sequence[str], *, timeout: float) -> int:
    """Call peers at known addresses and enter their routing tables; return how many answered.

    A peer that restarted without a living entrance is a swarm of its own until it does this.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    job = partial(_rejoin, addresses=list(addresses))
    return int(dht.run_coroutine(job, return_future=True).result(timeout))


def progress_fetch(dht: DHT, *, run_id: str, timeout: float) -> None:
    """Read the progress records that other peers store; validators see each of them.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    dht.get(progress_key(run_id), latest=True, return_future=True).result(timeout)


async def _connected(_dht: DHT, node: DHTNode) -> dict[str, list[str]]:
    # Plain strings: what p2pd answers does not pickle, and the caller would wait for ever.
    found: dict[str, list[str]] = {}
    for info in await node.p2p.list_peers():
        name = info.peer_id.to_base58()
        found.setdefault(name, []).extend(f"{address}/p2p/{name}" for address in info.addrs)
    return found


async def _rejoin(_dht: DHT, node: DHTNode, addresses: list[str]) -> int:
    answers = await asyncio.gather(*(_call(node, Multiaddr(address)) for address in addresses))
    if any(answers):
        await node.find_nearest_nodes([node.node_id])
    return sum(answers)


async def _call(node: DHTNode, address: Multiaddr) -> bool:
    peer = PeerID.from_base58(address["p2p"])
    if peer == node.peer_id:
        return False
    with suppress(P2PDaemonError, OSError, TimeoutError):
        connect = node.p2p._client.connect(peer, [address.decapsulate("/p2p/" + address["p2p"])])
        await asyncio.wait_for(connect, _CONNECT_SECONDS)
        return await node.protocol.call_ping(peer) is not None
    return False
