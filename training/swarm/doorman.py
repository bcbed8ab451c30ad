"""The gate of an averager's process: finds the passes of those it deals with, and judges them.

A call between averagers carries no pass, but libp2p proves the caller's peer id. The pass for it
is looked up among those that members keep in the DHT, and remembered.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any

from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.control import P2PHandlerError

from training.protocol.admission import Verdict
from training.swarm.gatekeeper import MAX_KNOWN, Gatekeeper
from training.swarm.members import passes_read

_REFRESH_SECONDS = 1.0
"""Between two looks into the DHT, however many strangers knock."""
_KEEP_SECONDS = 5.0
"""Between two looks when nobody waits for one; more in a large swarm."""
_KEEP_SECONDS_PER_MEMBER = 0.1
_READ_SECONDS = 3.0
_MAX_WAITING = 64
"""Calls that may wait for a look; those beyond are refused at once."""


class Refused(P2PHandlerError):
    """A peer is not dealt with; hivemind takes it for a peer that failed."""


class Doorman:
    """Lives in one event loop. ``dht`` may be asked from there."""

    def __init__(self, dht: Any, gatekeeper: Gatekeeper, *, run_id: str) -> None:
        self._dht, self._gatekeeper, self._run_id = dht, gatekeeper, run_id
        self._tokens: dict[str, str] = {}
        self._read_at = -_REFRESH_SECONDS
        self._waiting = 0
        self._lock = asyncio.Lock()
        self._keeping: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Look up passes from time to time, from now on; call it in the event loop."""
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def verdict(self, peer: PeerID) -> Verdict:
        """Judge a peer by the pass that the DHT has of it."""
        name = peer.to_base58()
        verdict = self._gatekeeper.judge(name, self._tokens.get(name, ""))
        if verdict in (Verdict.ADMITTED, Verdict.PEER_REVOKED):
            return verdict
        if self._waiting >= _MAX_WAITING:
            return verdict
        self._waiting += 1
        try:
            await self._refresh()
        finally:
            self._waiting -= 1
        return self._gatekeeper.judge(name, self._tokens.get(name, ""))

    async def admits(self, peer: PeerID) -> bool:
        """Return whether a peer may be dealt with."""
        return await self.verdict(peer) is Verdict.ADMITTED

    async def require(self, peer: PeerID) -> None:
        """Raise ``Refused`` unless a peer may be dealt with."""
        verdict = await self.verdict(peer)
        if verdict is not Verdict.ADMITTED:
            raise Refused(f"{peer} is not dealt with: {verdict}")

    def check(self, peer: PeerID) -> None:
        """Raise ``Refused`` once a peer's access is revoked; called for every message."""
        if self._gatekeeper.is_revoked(peer.to_base58()):
            raise Refused(f"{peer} is not dealt with: {Verdict.PEER_REVOKED}")

    async def _refresh(self) -> None:
        asked_at = time.monotonic()
        async with self._lock:
            if self._read_at >= asked_at:
                return  # somebody who waited before us has looked meanwhile
            await asyncio.sleep(max(0.0, self._read_at + _REFRESH_SECONDS - time.monotonic()))
            tokens = await passes_read(self._dht, run_id=self._run_id, seconds=_READ_SECONDS)
            self._read_at = time.monotonic()
            self._take(tokens)

    async def _keep(self) -> None:
        while True:
            with suppress(Exception):
                await self._refresh()
            members = _KEEP_SECONDS_PER_MEMBER * len(self._tokens)
            await asyncio.sleep(max(_KEEP_SECONDS, members))

    def _take(self, tokens: list[str]) -> None:
        found: dict[str, tuple[float, str]] = {}
        for token in tokens[:MAX_KNOWN]:
            signed = self._gatekeeper.pass_of(token)
            if signed is None:
                continue
            name, expires = signed.body.peer_id, signed.expires_at.timestamp()
            if expires > found.get(name, (0.0, ""))[0]:
                found[name] = (expires, token)
        # A pass that is no longer in the DHT stays good: the look may have been incomplete.
        merged = self._tokens | {name: token for name, (_, token) in found.items()}
        self._tokens = dict(list(merged.items())[-MAX_KNOWN:])
