"""Ways into the swarm: which peers can be called, kept on disk for the next start.

A coordinator that restarts without the address of a living peer would be a second, empty swarm
and newcomers would start there from epoch 0. So it remembers every peer that answered, calls
lost ones again, and tells the site where the swarm can be entered now.
"""

import ipaddress
import logging
import re
import socket
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from training.client.errors import ClientError
from training.client.files import json_read, json_write
from training.swarm.neighbours import neighbours_read, neighbours_rejoin, progress_fetch

logger = logging.getLogger(__name__)
MAX_KNOWN = 32
_ADDRESS = re.compile(r"^/ip[46]/(?P<host>[^/]+)/tcp/(?P<port>\d{1,5})/p2p/(?P<peer>[^/]+)$")
_ANSWER_SECONDS = 1.0
_LOOK_SECONDS = 5.0
_REJOIN_SECONDS = 30.0
_CHECK_AGAIN_SECONDS = 60.0


def address_answers(address: str) -> bool:
    """Whether something accepts TCP connections at a multiaddress."""
    match = _ADDRESS.match(address)
    if match is None:
        return False
    try:
        host = str(ipaddress.ip_address(match["host"]))
        with socket.create_connection((host, int(match["port"])), timeout=_ANSWER_SECONDS):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def addresses_alive(addresses: Iterable[str]) -> list[str]:
    """Return those addresses that answer, in the same order."""
    wanted = list(dict.fromkeys(addresses))
    if not wanted:
        return []
    with ThreadPoolExecutor(min(16, len(wanted)), thread_name_prefix="probe") as pool:
        return [
            a for a, alive in zip(wanted, pool.map(address_answers, wanted), strict=True) if alive
        ]


def peer_of(address: str) -> str:
    """Return the peer id in a multiaddress, '' if there is none."""
    match = _ADDRESS.match(address)
    return match["peer"] if match else ""


class KnownPeers:
    """Addresses of peers that answered once, newest first, on disk."""

    def __init__(self, path: Path, *, own_peer_id: str, given: Iterable[str] = ()) -> None:
        self._path, self._own = path, own_peer_id
        try:
            kept = (json_read(path) or {}).get("addresses", [])
        except ClientError as error:
            logger.warning("%s", error)
            kept = []
        self._addresses: list[str] = []
        self._add([*given, *(a for a in kept if isinstance(a, str))])

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self._addresses)

    def remember(self, addresses: Iterable[str]) -> None:
        """Put addresses in front; one per peer is kept."""
        before = self._addresses
        self._add([*addresses, *before])
        if self._addresses != before:
            json_write(self._path, {"addresses": self._addresses})

    def _add(self, addresses: Iterable[str]) -> None:
        by_peer = {peer_of(a): a for a in reversed(list(addresses))}
        by_peer.pop("", None)
        by_peer.pop(self._own, None)
        self._addresses = list(reversed(by_peer.values()))[:MAX_KNOWN]


class Entrances:
    """The thread that keeps track of peers that can be called."""

    def __init__(self, dht: Any, known: KnownPeers, *, run_id: str) -> None:
        self._dht, self._known, self._run_id = dht, known, run_id
        self._checked: dict[str, float] = {}
        self._rejoined = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="entrances", daemon=True)
        self.direct: dict[str, str] = {}
        """Address by id of the peers that are connected and answer calls."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                # Records that only others store pass our recorder when they are read.
                progress_fetch(self._dht, run_id=self._run_id, timeout=_LOOK_SECONDS)
                self.look()
            except Exception as error:  # noqa: BLE001 - what is known stays good
                logger.debug("cannot look for neighbours: %s", error)

    def look(self) -> None:
        """Bring ``direct`` up to date, remember it, and call peers that were lost."""
        connected = neighbours_read(self._dht, timeout=_LOOK_SECONDS)
        now = time.monotonic()
        direct = {p: a for p, a in self.direct.items() if a in connected.get(p, ())}
        due = [
            address
            for addresses in connected.values()
            for address in addresses
            if self._checked.get(address, -1e9) < now - _CHECK_AGAIN_SECONDS
        ]
        alive = addresses_alive(due)
        self._checked = {a: t for a, t in self._checked.items() if t > now - _CHECK_AGAIN_SECONDS}
        self._checked |= dict.fromkeys(due, now)
        gone = set(due) - set(alive)
        direct = {p: a for p, a in direct.items() if a not in gone}
        self.direct = direct | {peer_of(address): address for address in alive}
        self._known.remember(self.direct.values())
        lost = [a for a in self._known.addresses if peer_of(a) not in connected]
        if lost and now - self._rejoined > _REJOIN_SECONDS:
            self._rejoined = now
            # Few at once: what is sent to the DHT's process must fit one write to its pipe.
            neighbours_rejoin(self._dht, addresses_alive(lost)[:16], timeout=20.0)
