"""Keeps the signed progress records that other peers push to this one.

A DHT stores a record on the nodes whose ids are nearest to its key. A peer whose id *is* the
key of the progress records is therefore sent every one of them, at the moment they are stored:
nothing is lost between two looks, as it is when the DHT is asked every few seconds.

Validators run in the DHT's forked process, so the records come over through a queue that was
made before. They are checked on this side: only what its owner signed is handed out.
"""

import multiprocessing as mp
import queue
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.optim.progress_tracker import LocalTrainingProgress
from hivemind.p2p import PeerID

from training.client.swarm_key import SwarmKey
from training.protocol.base import MAX_COUNT, MAX_EPOCH, MAX_RATE
from training.protocol.keys import key_thumbprint
from training.protocol.names import progress_key
from training.swarm.identity import owner_public_der, rsa_key
from training.swarm.nesting import nesting_bound
from training.swarm.records import ProgressRecord

QUEUE_LENGTH = 20_000
"""Records that may wait. When it is full new ones are dropped: a later one says more."""
_MAX_RECORD_BYTES = 8_192
_MAX_PEER_ID_BYTES = 64
_UNREADABLE = (ValueError, TypeError, OverflowError, AttributeError, RecursionError, OSError)
"""What msgpack, pydantic and datetime raise for bytes that somebody made up: tuples in tuples are a
RecursionError to hivemind's reader, and a time out of the system's range an OSError."""
_FRESH_SECONDS = 5.0
"""Clocks of peers may differ by 3 s."""


class RawRecord(NamedTuple):
    """A record as it came: the bytes that its owner signed, and when."""

    received_at: float
    """Seconds since 1970."""
    key: bytes
    subkey: bytes
    value: bytes
    expiration_time: float


def progress_node_id(run_id: str) -> DHTID:
    """Return the DHT node id to which every progress record of the run is pushed."""
    return DHTID.generate(source=progress_key(run_id))


class ProgressRecorder(RecordValidatorBase):
    """A record validator that refuses nothing and keeps a copy of each progress record."""

    def __init__(self, run_id: str, *, length: int = QUEUE_LENGTH) -> None:
        context = mp.get_context("fork")
        self._key = progress_node_id(run_id).to_bytes()
        self._queue: Any = context.Queue(maxsize=length)
        self._dropped = context.Value("Q", 0)

    @property
    def priority(self) -> int:
        """Above the signature validator's 10, which passes records on without signatures."""
        return 20

    @property
    def dropped(self) -> int:
        """Records lost because the queue was full."""
        return int(self._dropped.value)

    def validate(self, record: DHTRecord) -> bool:
        """Keep the record. Runs in the DHT's event loop: never waits, never fails."""
        fits = len(record.value) + len(record.subkey) <= _MAX_RECORD_BYTES
        if record.key == self._key and fits:
            # Without this a full pipe would keep the DHT's process from ending.
            self._queue.cancel_join_thread()
            raw = RawRecord(
                datetime.now(UTC).timestamp(),
                record.key,
                record.subkey,
                record.value,
                record.expiration_time,
            )
            try:
                self._queue.put_nowait(raw)
            except queue.Full:
                with self._dropped.get_lock():
                    self._dropped.value += 1
        return True

    def drain(self) -> list[RawRecord]:
        """Return what came since the last call, oldest first. Does not wait."""
        records: list[RawRecord] = []
        with suppress(queue.Empty):
            while len(records) < QUEUE_LENGTH:
                records.append(self._queue.get_nowait())
        return records

    def close(self) -> None:
        """Give up the queue."""
        self._queue.cancel_join_thread()
        self._queue.close()


class ProgressReader:
    """Turns raw records into checked ones."""

    def __init__(self, key: SwarmKey) -> None:
        nesting_bound()
        self._signatures = RSASignatureValidator(rsa_key(key))

    def read(self, raw: RawRecord) -> ProgressRecord | None:
        """Return what the record's owner vouches for; None when the record is not his."""
        record = DHTRecord(raw.key, raw.subkey, raw.value, raw.expiration_time)
        thumbprint = _owner_thumbprint(raw.subkey)
        try:
            if thumbprint is None or not self._signatures.validate(record):
                return None
            value = DHTProtocol.serializer.loads(self._signatures.strip_value(record))
            return _parse(value, thumbprint, raw)
        except _UNREADABLE:
            return None


def _parse(value: Any, thumbprint: str, raw: RawRecord) -> ProgressRecord:
    if value is None:
        received_at = datetime.fromtimestamp(raw.received_at, UTC)
        return ProgressRecord(thumbprint, "", 0, 0, 0.0, False, received_at, received_at, left=True)
    progress = LocalTrainingProgress.parse_obj(value)
    speed = progress.samples_per_second
    _bounds_require(progress)
    return ProgressRecord(
        key_thumbprint=thumbprint,
        peer_id=PeerID(progress.peer_id).to_base58(),
        epoch=progress.epoch,
        samples_accumulated=progress.samples_accumulated,
        samples_per_second=speed if 0 <= speed <= MAX_RATE else 0.0,
        client_mode=progress.client_mode,
        reported_at=datetime.fromtimestamp(progress.time, UTC),
        received_at=_heard_at(raw.received_at, progress.time),
    )


def _bounds_require(progress: LocalTrainingProgress) -> None:
    """Raise ValueError for numbers that no report could carry on: hivemind bounds none of them."""
    fits = progress.epoch <= MAX_EPOCH and progress.samples_accumulated <= MAX_COUNT
    if not fits or len(progress.peer_id) > _MAX_PEER_ID_BYTES:
        raise ValueError("a progress record out of all bounds")


def _heard_at(received_at: float, made_at: float) -> datetime:
    """Return when a record was made, if it did not come fresh from its owner."""
    is_fresh = received_at - made_at < _FRESH_SECONDS
    return datetime.fromtimestamp(received_at if is_fresh else made_at, UTC)


@lru_cache(maxsize=4096)
def _owner_thumbprint(subkey: bytes) -> str | None:
    der = owner_public_der(subkey)
    return None if der is None else key_thumbprint(der)
