"""What a process without a pass tries: it knows every address, name and shape, and has a key."""

import asyncio
import multiprocessing as mp
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import ControlFailure
from hivemind.proto import averaging_pb2, dht_pb2
from hivemind.utils.asyncio import as_aiter
from hivemind.utils.multiaddr import Multiaddr

from training.protocol.names import members_key
from training.swarm.averaging import GradientAverager, TrainingStateAverager
from training.swarm.processes import children_guard

LIBP2P = {
    "relay": "/libp2p/circuit/relay/0.2.0/hop",
    "old relay": "/libp2p/circuit/relay/0.1.0",
    "dialling service": "/libp2p/autonat/1.0.0",
    "publishing": "/meshsub/1.1.0",
    "hole punching": "/libp2p/dcutr",
    "routing": "/ipfs/kad/1.0.0",
    "ping": "/ipfs/ping/1.0.0",
    "identify": "/ipfs/id/1.0.0",
}
"""What libp2p may serve by itself, to anybody who can connect."""
PREFIXES = ((GradientAverager, "grad_averager"), (TrainingStateAverager, "state_averager"))


def attack(key_file: Path, run_id: str, addresses: Sequence[str], seconds: float) -> dict[str, Any]:
    """Try everything at every address; return what was got, in a process of its own."""
    children_guard()
    context = mp.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        there.send(asyncio.run(asyncio.wait_for(_attack(key_file, run_id, addresses), seconds)))

    process = context.Process(target=run)
    process.start()
    there.close()
    try:
        assert here.poll(seconds), "the outsider found no end"
        return dict(here.recv())
    finally:
        process.kill()
        process.join()


async def _attack(key_file: Path, run_id: str, addresses: Sequence[str]) -> dict[str, Any]:
    got: dict[str, Any] = {"bytes": 0, "codes": [], "dht": [], "connected": 0, "libp2p": set()}
    p2p = await P2P.create(identity_path=str(key_file), nat_port_map=False)
    try:
        # All at once: each refusal waits for the second in which the peer asked looks again.
        await asyncio.gather(*(_peer(p2p, address, run_id, got) for address in addresses))
    finally:
        await p2p.shutdown()
    return got


async def _peer(p2p: P2P, address: str, run_id: str, got: dict[str, Any]) -> None:
    entrance = Multiaddr(address)
    peer = PeerID.from_base58(entrance["p2p"])
    await p2p._client.connect(peer, [entrance.decapsulate("/p2p/" + entrance["p2p"])])
    got["connected"] += 1
    got["libp2p"].update(await _libp2p(p2p, peer))
    await _dht(p2p, peer, run_id, got)
    for averager, name in PREFIXES:
        stub = averager.get_stub(p2p, peer, namespace=f"{run_id}_{name}")
        await _averager(stub, got)


async def _libp2p(p2p: P2P, peer: PeerID) -> set[str]:
    """Return what the peer's libp2p serves to us."""
    served = set()
    for what, protocol in LIBP2P.items():
        with suppress(ControlFailure):
            _, _, writer = await p2p._client.stream_open(peer, (protocol,))
            writer.close()
            served.add(what)
    return served


async def _dht(p2p: P2P, peer: PeerID, run_id: str, got: dict[str, Any]) -> None:
    stub = super(DHTProtocol, DHTProtocol).get_stub(p2p, peer)
    info = dht_pb2.NodeInfo(node_id=DHTID.generate().to_bytes())
    key = DHTID.generate(source=members_key(run_id)).to_bytes()
    store = dht_pb2.StoreRequest(
        keys=[key],
        subkeys=[b"\xa1x"],
        values=[b"\xa1x"],
        expiration_time=[time.time() + 60],
        in_cache=[False],
        peer=info,
    )
    for call, request in (
        (stub.rpc_ping, dht_pb2.PingRequest(peer=info)),
        (stub.rpc_find, dht_pb2.FindRequest(keys=[key], peer=info)),
        (stub.rpc_store, store),
    ):
        try:
            await call(request, timeout=3)
            got["dht"].append("answered")
        except Exception:  # noqa: BLE001 - refusals of hivemind are errors of several kinds
            got["dht"].append("refused")


async def _averager(stub: Any, got: dict[str, Any]) -> None:
    given = await _state_bytes(stub)
    got["bytes"] += given
    join = averaging_pb2.JoinRequest(
        schema_hash=b"x" * 20, expiration=time.time() + 10, group_key="k", gather=b""
    )
    part = averaging_pb2.AveragingData(
        code=averaging_pb2.PART_FOR_AVERAGING, group_id=b"g" * 20, weight=1e9
    )
    for _ in range(3):
        for call, request in (
            (stub.rpc_join_group, join),
            (stub.rpc_aggregate_part, as_aiter(part)),
        ):
            try:
                async for message in await call(request):
                    got["codes"].append(averaging_pb2.MessageCode.Name(message.code))
            except Exception as error:  # noqa: BLE001 - a coordinator has no gradient averager
                got["codes"].append("no such call" if "protocol" in str(error) else repr(error))


async def _state_bytes(stub: Any) -> int:
    total = 0
    try:
        async for message in await stub.rpc_download_state(averaging_pb2.DownloadRequest()):
            total += message.ByteSize()
    except Exception:  # noqa: BLE001 - a coordinator has no gradient averager
        return total
    return total
