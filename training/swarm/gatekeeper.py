"""The gate of one process: reads what the main process knows, and judges other peers by it."""

import time
from collections import OrderedDict
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from training.client.errors import ClientError
from training.client.gate import Gate, gate_read
from training.protocol.admission import Verdict
from training.protocol.claims import PeerPass
from training.protocol.envelope import EnvelopeError, Signed
from training.protocol.gate import GateView, pass_open, revocations_open, verdict_of
from training.protocol.keys import key_thumbprint, peer_id_of
from training.swarm.clock import swarm_now

MAX_KNOWN = 4096
"""Peers and passes that are remembered; the longest unused are forgotten first."""
_LOOK_SECONDS = 0.2


class GateReader:
    """The newest content of the gate's file, looked for a few times a second at most."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked, self._stamp = -1.0, (0, 0)
        self._view = GateView()

    def view(self) -> GateView:
        """Return what is known; when the file cannot be read, what was known before."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            try:
                facts = self._path.stat()
                stamp = (facts.st_mtime_ns, facts.st_ino)
                if stamp != self._stamp:
                    self._view = gate_read(self._path).view
                    self._stamp = stamp
            except (OSError, ClientError):
                return self._view
        return self._view


class Gatekeeper:
    """Judges peers. Copied into every forked process, where it reads and remembers by itself."""

    def __init__(self, gate: Gate) -> None:
        self._rules = gate.rules
        self._reader = GateReader(gate.path)
        self._known: OrderedDict[str, datetime] = OrderedDict()
        self._passes: OrderedDict[str, Signed[PeerPass]] = OrderedDict()
        self._list = ""

    @property
    def view(self) -> GateView:
        return self._reader.view()

    def is_revoked(self, peer_id: str) -> bool:
        """Return whether nobody may deal with a peer any more; cheap enough for every message."""
        return peer_id in self.view.revoked

    def judge(self, peer_id: str, token: str) -> Verdict:
        """Return the verdict on a peer that shows ``token``; its id must be proven."""
        now = swarm_now()
        verdict = verdict_of(
            peer_id,
            token,
            rules=self._rules,
            view=self.view,
            now=now,
            is_known=self._is_known(peer_id, now),
            open_pass=self._pass_open,
        )
        if verdict is Verdict.ADMITTED:
            expires = self._passes[token].expires_at
            if now < expires:
                self._known[peer_id] = expires
                self._known.move_to_end(peer_id)
                _shorten(self._known)
        return verdict

    def judge_key(self, ssh_public_key: bytes, token: str) -> Verdict:
        """As :meth:`judge`, of the owner of an RSA key as hivemind writes it."""
        der = _der_of(ssh_public_key)
        if der is None:
            return Verdict.PASS_WRONG_PEER
        verdict = self.judge(peer_id_of(der), token)
        is_admitted = verdict is Verdict.ADMITTED
        if is_admitted and self._passes[token].body.key_thumbprint != key_thumbprint(der):
            return Verdict.PASS_WRONG_PEER
        return verdict

    def pass_of(self, token: str) -> Signed[PeerPass] | None:
        """Return a pass whose signature is right, None otherwise."""
        try:
            return self._pass_open(token)
        except EnvelopeError:
            return None

    def _pass_open(self, token: str) -> Signed[PeerPass]:
        """Return a pass whose signature is right; each is checked once.

        Raises:
            EnvelopeError: as :func:`pass_open`.
        """
        kept, view = self._passes.get(token), self.view
        if kept is not None and kept.key_id in view.key_ids:
            self._passes.move_to_end(token)
            return kept
        signed = pass_open(token, view.keys)
        self._passes[token] = signed
        _shorten(self._passes)
        return signed

    def is_list(self, token: str) -> bool:
        """Return whether the site signed a list of revoked peers of this run. The last is kept."""
        if not self._list or token != self._list:
            try:
                revocations_open(token, self.view.keys, run=self._rules.run)
            except EnvelopeError:
                return False
            self._list = token
        return True

    def _is_known(self, peer_id: str, now: datetime) -> bool:
        expired = self._known.get(peer_id)
        return expired is not None and now < expired + self._rules.grace + timedelta(seconds=1)


def _shorten(items: OrderedDict[str, Any]) -> None:
    while len(items) > MAX_KNOWN:
        items.popitem(last=False)


@lru_cache(maxsize=MAX_KNOWN)
def _der_of(ssh_public_key: bytes) -> bytes | None:
    try:
        key = serialization.load_ssh_public_key(ssh_public_key)
    except ValueError:
        return None
    if not isinstance(key, rsa.RSAPublicKey):
        return None
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
