"""The heartbeat: keeps the pass fresh, brings commands and news of the config."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from training.client.errors import ClientError, PlatformError
from training.client.gate import Gate
from training.client.join import Admission, Joiner
from training.client.plaintext import text_safe
from training.client.receipts import ReceiptReader
from training.protocol.api import PassRequest, PassResponse, PeerNote
from training.protocol.claims import PeerPass
from training.protocol.envelope import Signed
from training.protocol.errors import ErrorCode
from training.protocol.states import Command

_RECEIPT_SECONDS = 60.0
_KEYS_SECONDS = 300.0
"""A new key of the site is noticed by its first signature; that an old one is trusted no longer is
noticed only by looking."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeartbeatEvents:
    """Whom the heartbeat tells; called from its thread, must return soon."""

    progress: Callable[[], PassRequest]
    """What to report."""
    command: Callable[[Command], None]
    config: Callable[[int], None]
    """A newer config version is published."""
    refused: Callable[[ClientError], None]
    """The site wants this device no longer (banned, revoked, run over)."""
    counted: Callable[[str], None] | None = None
    """A sentence about a new receipt; None: receipts are not asked for."""
    message: Callable[[str], None] | None = None
    """A sentence with what a moderator wrote, safe to show; each is told once."""


class Heartbeat:
    """A thread that talks to the site beside the training and never holds it up."""

    def __init__(
        self,
        joiner: Joiner,
        admission: Admission,
        events: HeartbeatEvents,
        *,
        gate: Gate | None = None,
    ) -> None:
        """``gate`` is told of every fresh pass, of the site's keys and of the revoked peers."""
        self._gate = gate
        self._joiner = joiner
        self._admission = admission
        self._events = events
        self._pass = admission.peer_pass
        self._bootstrap_peers = admission.bootstrap_peers
        self._message_seen = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._receipts = ReceiptReader(
            joiner.client, joiner.slug, joiner.folder / "receipts", admission.trust
        )

    @property
    def pass_token(self) -> str:
        """The newest pass (JWS)."""
        return self._pass.token

    @property
    def bootstrap_peers(self) -> tuple[str, ...]:
        """The newest addresses by which the swarm can be entered."""
        return self._bootstrap_peers

    def start(self) -> None:
        """Begin; the first beat comes one interval later."""
        self._thread.start()

    def stop(self) -> None:
        """End; a call that is under way is waited for, but not long."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def beat(self) -> PassResponse:
        """Report once and take over the fresh pass.

        Raises:
            ClientError: the site refuses, is not reachable, or its pass is not to be trusted.
        """
        path = f"/runs/{self._joiner.slug}/pass/"
        report = self._events.progress()
        if self._message_seen:  # left out otherwise: an older site does not know the field
            report = report.model_copy(update={"message_seen": self._message_seen})
        answer = self._joiner.client.post(path, report, PassResponse)
        self._pass = self._checked(answer.peer_pass)
        if self._gate is not None:
            self._gate.heard(
                peer_pass=self._pass.token,
                keys=self._receipts.trust.keys,
                revocations=answer.revocations,
            )
        if answer.bootstrap_peers:
            self._bootstrap_peers = answer.bootstrap_peers
        self._tell_messages(answer)
        return answer

    def _tell_messages(self, answer: PassResponse) -> None:
        if self._events.message is None:
            return
        for note in answer.messages:
            if note.id > self._message_seen:
                self._message_seen = note.id
                self._events.message(note_sentence(note))

    def _checked(self, token: str) -> Signed[PeerPass]:
        lineage = self._admission.config.body.lineage
        try:
            return self._joiner.pass_check(token, self._receipts.trust, lineage=lineage)
        except ClientError as error:
            if error.code != ErrorCode.UNKNOWN_KEY:
                raise
        # The site changed its key during this run; the old one has to vouch for the new one.
        self._receipts.trust = self._joiner.trust_update()
        return self._joiner.pass_check(token, self._receipts.trust, lineage=lineage)

    def _run(self) -> None:
        interval = self._admission.config.body.report.heartbeat_seconds
        since_receipts, since_keys = _RECEIPT_SECONDS, 0.0
        while True:
            try:
                if since_keys >= _KEYS_SECONDS:
                    self._keys_refresh()
                    since_keys = 0.0
                if since_receipts >= _RECEIPT_SECONDS:
                    self._tell_receipts()
                    since_receipts = 0.0
                if self._stop.wait(interval):
                    return
                since_receipts += interval
                since_keys += interval
                self._beat_and_tell()
            except Exception:  # noqa: BLE001 - a dead heartbeat would let the pass expire
                _log.exception("heartbeat of run %s stumbled", self._joiner.slug)
                if self._stop.wait(interval):
                    return

    def _beat_and_tell(self) -> None:
        try:
            answer = self.beat()
        except ClientError as error:
            if not self._stop.is_set():
                self._judge(error)
            return
        if answer.config_version > self._admission.config.body.version:
            self._events.config(answer.config_version)
        for command in answer.commands:
            self._events.command(command)

    def _keys_refresh(self) -> None:
        try:
            self._receipts.trust = self._joiner.trust_update()
        except ClientError as error:
            _log.warning("keys of the site of run %s: %s", self._joiner.slug, error.detail)

    def _judge(self, error: ClientError) -> None:
        if isinstance(error, PlatformError) and error.status in (401, 403, 404, 409, 426):
            self._events.refused(error)
        else:  # the site is away or talks nonsense: the pass lasts, the training goes on
            _log.warning("heartbeat of run %s: %s", self._joiner.slug, error.detail)

    def _tell_receipts(self) -> None:
        if self._events.counted is None:
            return
        try:
            for line in self._receipts.fetch():
                self._events.counted(line)
        except ClientError as error:
            _log.warning("receipts of run %s: %s", self._joiner.slug, error.detail)


def note_sentence(note: PeerNote) -> str:
    """Return what a moderator wrote as one safe line."""
    sender = text_safe(note.sender, 60)
    return f"Message from {sender or 'the organisers'}: {text_safe(note.text)}"
