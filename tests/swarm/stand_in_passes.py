"""The signing side of a stand-in site: passes and revocation lists, for processes of a test."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from joserfc.jwk import OKPKey

from training.client.clock import SiteClock
from training.client.files import file_write, json_read, json_write
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey
from training.protocol.claims import PeerPass, Revocations
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_dump, key_generate, key_load
from training.protocol.names import TYP_PASS, TYP_REVOCATIONS
from training.protocol.states import Role


class PassOffice:
    """Signs with the key in a folder that all processes of a test share.

    ``down`` in the folder makes it unreachable, ``mute`` in a peer's folder silences that peer.
    """

    def __init__(self, folder: Path, clock: SiteClock | None = None) -> None:
        self.folder, self.clock = folder, clock or SiteClock()
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "key.jwk").exists():
            file_write(folder / "key.jwk", key_dump(key_generate()).encode())

    @property
    def key(self) -> OKPKey:
        return key_load((self.folder / "key.jwk").read_text())

    @property
    def is_down(self) -> bool:
        return (self.folder / "down").exists()

    def lifetime_set(self, seconds: float) -> None:
        json_write(self.folder / "lifetime.json", {"seconds": seconds})

    def pass_make(self, config: RunConfig, key: SwarmKey, *, age: float = 0, **claims: Any) -> str:
        """Return a pass for a peer, issued ``age`` seconds ago; claims replace what is right."""
        seconds = (json_read(self.folder / "lifetime.json") or {"seconds": 1800.0})["seconds"]
        body: dict[str, Any] = {
            "sub": "bob",
            "device": "d1",
            "run": config.run,
            "lineage": config.lineage,
            "peer_id": key.peer_id,
            "key_thumbprint": key.thumbprint,
            "role": Role.TRAINER,
        }
        return self._sign(PeerPass(**(body | claims)), TYP_PASS, seconds, age=age)

    def revoke(self, run: str, *peer_ids: str) -> str:
        """Publish a list with these peers and return it."""
        kept = json_read(self.folder / "revoked.json") or {"seq": 0, "jws": ""}
        body = Revocations(run=run, seq=kept["seq"] + 1, peer_ids=peer_ids)
        token = self._sign(body, TYP_REVOCATIONS, 86400)
        json_write(self.folder / "revoked.json", {"seq": body.seq, "jws": token})
        return token

    @property
    def revocations(self) -> str:
        return str((json_read(self.folder / "revoked.json") or {"jws": ""})["jws"])

    def gate(self, folder: Path, config: RunConfig, key: SwarmKey, **claims: Any) -> Gate:
        """Return the gate of a peer that has just joined."""
        token = self.pass_make(config, key, **claims)
        return Gate(folder, config=config, keys=[self.key], peer_pass=token, clock=self.clock)

    def beat(self, gate: Gate, config: RunConfig, key: SwarmKey, *, seconds: float) -> None:
        """Renew a peer's pass from now on, as its heartbeat does."""

        def run() -> None:
            while not stop.wait(seconds):
                if not self.is_down and not (gate.path.parent / "mute").exists():
                    fresh = self.pass_make(config, key)
                    gate.heard(peer_pass=fresh, revocations=self.revocations)

        stop = threading.Event()
        threading.Thread(target=run, name="heartbeat", daemon=True).start()

    def _sign(self, body: Any, typ: str, seconds: float, *, age: float = 0) -> str:
        issued = self.clock.now() - timedelta(seconds=age)
        lifetime = timedelta(seconds=seconds)
        return sign(
            body, typ=typ, key=self.key, issuer="http://site", lifetime=lifetime, now=issued
        )


def clock_measured(ahead: float) -> SiteClock:
    """Return the clock of a machine that is so many seconds ahead of the site, and knows it."""
    clock = SiteClock()
    clock._low = clock._high = -ahead
    return clock
