"""The gate's thread of a peer: its pass for others to find, the newest list, the banned gone.

Every two seconds, and at once when the heartbeat brought something new.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from training.client.clock import SiteClock
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey
from training.swarm.clock import swarm_clock_set
from training.swarm.members import (
    LIFETIME_SECONDS,
    list_store,
    lists_read,
    pass_store,
    peers_drop,
)

_log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0
_STORE_SECONDS = LIFETIME_SECONDS / 4
_CALL_SECONDS = 5.0


class GateWatch:
    """Stands beside a DHT peer from its start to its end."""

    def __init__(
        self,
        dht: Any,
        *,
        key: SwarmKey,
        gate: Gate | None,
        clock: SiteClock,
        spreads_list: bool,
        revoked: Callable[[], None],
    ) -> None:
        """
        Args:
            gate: None in a run that is open to all: then only the clock is followed.
            spreads_list: put the list into the DHT too; coordinators do.
            revoked: called, once, when this peer itself is on the list.
        """
        self._dht, self._key, self._gate, self._clock = dht, key, gate, clock
        self._spreads_list, self._revoked = spreads_list, revoked
        self._stored: dict[str, tuple[str, float]] = {}
        self._is_told = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)

    def start(self) -> None:
        """Go on looking in a thread, once all that must be forked has been forked."""
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._gate is not None:
            self._gate.changed.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def look(self) -> None:
        """Do what is due; takes a few seconds at most. Never raises: another look will come.

        The first one makes this peer's pass known, so that others let it into their groups.
        """
        swarm_clock_set(self._clock.correction)
        if self._gate is None:
            return
        self._gate.changed.clear()
        for step in (self._spread, self._list_read, self._drop):
            try:
                step(self._gate)
            except Exception as error:  # noqa: BLE001 - a gate that ends would let the banned in
                _log.warning("run %s: gate: %r", self._gate.rules.run, error)
        if self._key.peer_id in self._gate.view.revoked and not self._is_told:
            self._is_told = True
            self._revoked()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._gate is None:
                self._stop.wait(LOOK_SECONDS)
            else:
                self._gate.changed.wait(LOOK_SECONDS)
            if not self._stop.is_set():
                self.look()

    def _spread(self, gate: Gate) -> None:
        run_id = self._dht.run_id
        if self._is_due("pass", gate.view.own_pass) and pass_store(
            self._dht, run_id=run_id, key=self._key, path=gate.path, timeout=_CALL_SECONDS
        ):
            self._stored["pass"] = (gate.view.own_pass, time.monotonic())
        self._list_spread(gate)

    def _list_spread(self, gate: Gate) -> None:
        if not self._spreads_list or not self._is_due("list", gate.revocations):
            return
        if list_store(
            self._dht,
            run_id=self._dht.run_id,
            key=self._key,
            path=gate.path,
            timeout=_CALL_SECONDS,
        ):
            self._stored["list"] = (gate.revocations, time.monotonic())

    def _list_read(self, gate: Gate) -> None:
        for token in lists_read(self._dht, run_id=self._dht.run_id, timeout=_CALL_SECONDS):
            if gate.revocations_take(token):
                self._list_spread(gate)

    def _drop(self, gate: Gate) -> None:
        if gate.view.revoked:
            num = peers_drop(self._dht, timeout=_CALL_SECONDS)
            if num:
                _log.info("run %s: %d banned peers disconnected", gate.rules.run, num)

    def _is_due(self, what: str, token: str) -> bool:
        stored, at = self._stored.get(what, ("", 0.0))
        return bool(token) and (token != stored or time.monotonic() - at > _STORE_SECONDS)
