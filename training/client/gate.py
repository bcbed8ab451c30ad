"""What this device knows of who may be in the swarm, for all processes of one peer.

The heartbeat brings a fresh pass, the site's keys and the list of revoked peers; hivemind's
processes were forked long before. They are told by a file in the run's folder, which is replaced
in one step and read again when it changed.
"""

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from joserfc.jwk import OKPKey

from training.client.clock import SiteClock
from training.client.errors import ClientError
from training.client.files import file_broken, json_read, json_write
from training.protocol.claims import PeerPass
from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, Signed
from training.protocol.gate import GateRules, GateView, pass_open, revocations_open
from training.protocol.keys import key_load, public_jwk

_log = logging.getLogger(__name__)
GATE_FILE = "gate.json"


@dataclass(frozen=True)
class GateRecord:
    """The content of the file."""

    view: GateView
    revocations: str = ""
    """JWS of the list that is applied."""


def gate_for(config: RunConfig, gate: "Gate | None") -> "Gate | None":
    """Return the gate of a run that demands passes; None in one that is open to all.

    Raises:
        ValueError: the run needs a gate and there is none.
    """
    if config.swarm.admission == "open":
        return None
    if gate is None:
        raise ValueError("this run demands passes, and the session has none")
    return gate


def gate_read(path: Path) -> GateRecord:
    """Return what the file says. Its writer has checked all of it, and nobody else can write it.

    Raises:
        ClientError: the file is missing or damaged.
    """
    data = json_read(path) or {}
    try:
        told = data["contact_at"]
        view = GateView(
            keys=tuple(key_load(jwk) for jwk in data["keys"]),
            own_pass=str(data["pass"]),
            revoked=frozenset(map(str, data["revoked"])),
            revocations_seq=int(data["revocations_seq"]),
            contact_at=None if told is None else datetime.fromtimestamp(told, UTC),
        )
        return GateRecord(view, str(data["revocations"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise file_broken(path, str(error)) from error


class Gate:
    """The writer of the file, in a peer's main process. Safe for use by several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        config: RunConfig,
        keys: Iterable[OKPKey],
        peer_pass: str,
        clock: SiteClock,
    ) -> None:
        """``peer_pass`` came from the site just now; a list of an earlier start stays in force."""
        self.path = folder / GATE_FILE
        self.rules = GateRules.of(config)
        self.changed = threading.Event()
        """Set when the pass or the list changed; whoever acts on it clears it."""
        self._clock, self._lock = clock, threading.Lock()
        self._new_key_at: datetime | None = None
        kept = self._kept()
        self._record = replace(kept, view=replace(kept.view, keys=tuple(keys), own_pass=""))
        self.heard(peer_pass=peer_pass)

    @property
    def view(self) -> GateView:
        return self._record.view

    @property
    def revocations(self) -> str:
        """JWS of the list that is applied; empty when there is none."""
        return self._record.revocations

    def heard(
        self, *, peer_pass: str, keys: Iterable[OKPKey] | None = None, revocations: str = ""
    ) -> None:
        """Take over what the site has just answered.

        Raises:
            ClientError: the folder cannot be written.
        """
        now = self._clock.now()
        with self._lock:
            view = self._record.view
            if keys is not None:
                view = replace(view, keys=tuple(keys))
            shown = self._shown(view, peer_pass, now)
            if shown != view.own_pass:
                self.changed.set()
            self._record = replace(self._record, view=replace(view, own_pass=shown, contact_at=now))
            self._revocations_take(revocations)
            self._write()

    def revocations_take(self, token: str) -> bool:
        """Apply a list, wherever it came from, if it is the site's and newer; tell if so."""
        with self._lock:
            is_newer = self._revocations_take(token)
            if is_newer:
                self._write()
            return is_newer

    def _revocations_take(self, token: str) -> bool:
        before = self._record.view
        newer = _with_revocations(self._record, token, self.rules.run)
        if newer is None:
            return False
        self._record = newer
        self.changed.set()
        if newer.view.revocations_seq != before.revocations_seq:
            _log.info(
                "run %s: revocation list %d, %d peers",
                *(self.rules.run, newer.view.revocations_seq, len(newer.view.revoked)),
            )
        return True

    def _shown(self, view: GateView, fresh: str, now: datetime) -> str:
        """Return the pass to show. One by a new key of the site waits until all know that key."""
        try:
            old, new = pass_open(view.own_pass, view.keys), pass_open(fresh, view.keys)
        except EnvelopeError:
            return fresh or view.own_pass
        if old.key_id == new.key_id:
            self._new_key_at = None
            return fresh
        self._new_key_at = self._new_key_at or now
        is_waiting = now - self._new_key_at < self.rules.stale
        return view.own_pass if is_waiting and _lasts(old, now + self.rules.stale) else fresh

    def _kept(self) -> GateRecord:
        try:
            return gate_read(self.path)
        except ClientError:
            return GateRecord(GateView())

    def _write(self) -> None:
        view, contact = self._record.view, self._record.view.contact_at
        json_write(
            self.path,
            {
                "pass": view.own_pass,
                "keys": [public_jwk(key) for key in view.keys],
                "revocations": self._record.revocations,
                "revocations_seq": view.revocations_seq,
                "revoked": sorted(view.revoked),
                "contact_at": None if contact is None else contact.timestamp(),
            },
        )


def _lasts(signed: Signed[PeerPass], until: datetime) -> bool:
    return signed.expires_at > until


def _with_revocations(record: GateRecord, token: str, run: str) -> GateRecord | None:
    """Return the record with a newer list in it; None when the token is no such list.

    A list that was signed anew replaces its older copy. One by a key that is trusted no longer
    stays in force, and yields to any list that is trusted, whatever its number.
    """
    if not token or token == record.revocations:
        return None
    try:
        offered = revocations_open(token, record.view.keys, run=run)
    except EnvelopeError as error:
        _log.warning("run %s: a list of revoked peers is not usable: %s", run, error.detail)
        return None
    with suppress(EnvelopeError):
        held = revocations_open(record.revocations, record.view.keys, run=run)
        if (offered.body.seq, offered.issued_at) <= (held.body.seq, held.issued_at):
            return None
    body = offered.body
    view = replace(record.view, revoked=frozenset(body.peer_ids), revocations_seq=body.seq)
    return GateRecord(view, token)
