"""Ways into the swarm: which peers can be called, kept on disk for the next start.

A coordinator that restarts without the address of a living peer would be a second, empty swarm
and newcomers would start there from epoch 0. So it remembers every peer that answered, calls
lost ones again, and tells the site where the swarm can be entered now.
"""

import logging
import threading
import time
from typing import Any

from training.coordinator.known_peers import KnownPeers, addresses_alive, peer_of
from training.swarm.neighbours import neighbours_read, neighbours_rejoin, progress_fetch

logger = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0
_REJOIN_SECONDS = 30.0
_CHECK_AGAIN_SECONDS = 60.0


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
        self.num_failures = 0
        """Looks that failed in a row: p2pd, which knows our connections, does not answer."""

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
                self.num_failures = 0
            except Exception as error:  # noqa: BLE001 - what is known stays good
                self.num_failures += 1
                logger.warning("run %s: cannot look for neighbours: %r", self._run_id, error)

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
