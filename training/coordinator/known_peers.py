"""Addresses of peers that answered, kept on disk for the next start."""

import ipaddress
import logging
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from training.client.errors import ClientError
from training.client.files import json_read, json_write

logger = logging.getLogger(__name__)
MAX_KNOWN = 32
_ADDRESS = re.compile(r"^/ip[46]/(?P<host>[^/]+)/tcp/(?P<port>\d{1,5})/p2p/(?P<peer>[^/]+)$")
_ANSWER_SECONDS = 1.0


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
