"""Passes and lists in the DHT: every member's pass, and the site's list of revoked peers.

Both are stored under subkeys that only their owner's RSA key can write. They prove nothing by
that: a pass and a list are believed because the site signed them.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hivemind import DHT
from hivemind.dht.node import DHTNode
from hivemind.utils.timed_storage import ValueWithExpiration

from training.client.errors import ClientError
from training.client.files import json_read
from training.client.swarm_key import SwarmKey
from training.protocol.names import members_key, revocations_key
from training.swarm.clock import swarm_time
from training.swarm.identity import owner_subkey

LIFETIME_SECONDS = 90.0
"""Of a record; it is stored anew long before."""
_MAX_RECORDS = 4096
_MAX_TOKEN = 100_000


def pass_store(dht: DHT, *, run_id: str, key: SwarmKey, path: Path, timeout: float) -> bool:
    """Store this peer's pass for others to find; tell whether somebody took it.

    The DHT's process reads the pass from the gate's file: what is sent to that process must fit
    one write to its pipe.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    return _store(dht, members_key(run_id), key, path, "pass", timeout)


def list_store(dht: DHT, *, run_id: str, key: SwarmKey, path: Path, timeout: float) -> bool:
    """Store the site's list of revoked peers; see :func:`pass_store`."""
    return _store(dht, revocations_key(run_id), key, path, "revocations", timeout)


def lists_read(dht: DHT, *, run_id: str, timeout: float) -> list[str]:
    """Return the lists (JWS, not yet verified) that others have stored.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    found = dht.get(revocations_key(run_id), latest=True, return_future=True).result(timeout)
    return _tokens(None if found is None else found.value)


async def passes_read(dht: DHT, *, run_id: str, seconds: float) -> list[str]:
    """Return the passes (JWS, not yet verified) that members have stored; none in case of need."""
    try:
        future = dht.get(members_key(run_id), latest=True, return_future=True)
        found = await asyncio.wait_for(future, seconds)
    except (TimeoutError, OSError):
        return []
    return _tokens(None if found is None else found.value)


def peers_drop(dht: DHT, *, timeout: float) -> int:
    """Close the connections to revoked peers; return how many there were.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    return int(dht.run_coroutine(_peers_drop, return_future=True).result(timeout))


def _store(dht: DHT, key: str, owner: SwarmKey, path: Path, field: str, timeout: float) -> bool:
    job = partial(_store_field, key=key, subkey=owner_subkey(owner), path=str(path), field=field)
    return bool(dht.run_coroutine(job, return_future=True).result(timeout))


async def _store_field(
    _dht: DHT, node: DHTNode, *, key: str, subkey: bytes, path: str, field: str
) -> bool:
    try:
        token = str((json_read(Path(path)) or {}).get(field, ""))
    except ClientError:
        return False
    if not token:
        return False
    expires = swarm_time() + LIFETIME_SECONDS
    return bool(await node.store(key, token, expires, subkey=subkey))


async def _peers_drop(dht: DHT, node: DHTNode) -> int:
    revoked = dht.gatekeeper.view.revoked
    dropped = 0
    for info in await node.p2p.list_peers() if revoked else ():
        if info.peer_id.to_base58() in revoked:
            await node.p2p._client.disconnect(info.peer_id)
            dropped += 1
    return dropped


def _tokens(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    entries = [entry.value for entry in value.values() if isinstance(entry, ValueWithExpiration)]
    tokens = [v for v in entries if isinstance(v, str) and len(v) <= _MAX_TOKEN]
    return tokens[:_MAX_RECORDS]
