"""Records that peers push, from the DHT's process to checked numbers."""

import multiprocessing as mp
from datetime import UTC, datetime, timedelta

import pytest
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.p2p import PeerID

from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.swarm.identity import rsa_key
from training.swarm.recorder import (
    ProgressReader,
    ProgressRecorder,
    RawRecord,
    progress_node_id,
)
from training.swarm.schema import validators

RUN = "demo-1"
dumps = DHTProtocol.serializer.dumps


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> SwarmKey:
    return swarm_key_load_or_create(tmp_path_factory.mktemp("alice") / "swarm.key")


@pytest.fixture(scope="module")
def mallory(tmp_path_factory: pytest.TempPathFactory) -> SwarmKey:
    return swarm_key_load_or_create(tmp_path_factory.mktemp("mallory") / "swarm.key")


def now() -> float:
    return datetime.now(UTC).timestamp()


def progress_of(key: SwarmKey, **changes: object) -> dict[str, object]:
    return {
        "peer_id": PeerID.from_base58(key.peer_id).to_bytes(),
        "epoch": 3,
        "samples_accumulated": 96,
        "samples_per_second": 12.5,
        "time": now(),
        "client_mode": False,
    } | changes


def signed(key: SwarmKey, value: object, *, run: str = RUN) -> DHTRecord:
    """Return a record as its owner stores it."""
    validator = RSASignatureValidator(rsa_key(key))
    place = progress_node_id(run).to_bytes()
    record = DHTRecord(place, dumps(validator.local_public_key), dumps(value), now() + 60)
    value_bytes = validator.sign_value(record)
    return DHTRecord(record.key, record.subkey, value_bytes, record.expiration_time)


def raw(record: DHTRecord) -> RawRecord:
    return RawRecord(now(), record.key, record.subkey, record.value, record.expiration_time)


def test_a_record_is_captured_as_it_was_signed_and_read_back(
    alice: SwarmKey, mallory: SwarmKey
) -> None:
    recorder = ProgressRecorder(RUN)
    chain = CompositeValidator([*validators(mallory, RUN), recorder])
    record = signed(alice, progress_of(alice))
    assert chain.validate(record)
    found = wait_for(recorder, 1)
    assert (found[0].subkey, found[0].value) == (record.subkey, record.value)
    progress = ProgressReader(mallory).read(found[0])
    assert progress is not None
    assert (progress.key_thumbprint, progress.peer_id) == (alice.thumbprint, alice.peer_id)
    assert (progress.epoch, progress.samples_accumulated) == (3, 96)
    assert (progress.samples_per_second, progress.client_mode) == (12.5, False)
    recorder.close()


def test_records_come_over_from_a_forked_process(alice: SwarmKey) -> None:
    recorder = ProgressRecorder(RUN)
    records = [signed(alice, progress_of(alice, samples_accumulated=n)) for n in range(20)]
    child = mp.get_context("fork").Process(target=_validate_all, args=(recorder, records))
    child.start()
    reader = ProgressReader(alice)
    found = [reader.read(item) for item in wait_for(recorder, 20)]
    child.join(5)
    assert [p.samples_accumulated for p in found if p is not None] == list(range(20))
    recorder.close()


def _validate_all(recorder: ProgressRecorder, records: list[DHTRecord]) -> None:
    for record in records:
        recorder.validate(record)
    wait = mp.get_context("fork").Event()
    wait.wait(1)  # the queue's thread sends in the background


def test_what_does_not_fit_the_queue_is_dropped_and_counted(alice: SwarmKey) -> None:
    recorder = ProgressRecorder(RUN, length=3)
    record = signed(alice, progress_of(alice))
    assert all(recorder.validate(record) for _ in range(5))
    assert (recorder.dropped, len(wait_for(recorder, 3))) == (2, 3)
    recorder.close()


def test_other_keys_and_huge_records_are_passed_on_and_not_kept(alice: SwarmKey) -> None:
    recorder = ProgressRecorder(RUN)
    assert recorder.validate(signed(alice, progress_of(alice), run="other-1"))
    assert recorder.validate(signed(alice, {"x": "y" * 10_000}))
    assert recorder.drain() == []
    recorder.close()


def test_a_record_that_somebody_else_signed_is_not_counted(
    alice: SwarmKey, mallory: SwarmKey
) -> None:
    owned = signed(alice, progress_of(alice))
    forged = signed(mallory, progress_of(alice))
    assert ProgressReader(mallory).read(raw(forged)._replace(subkey=owned.subkey)) is None


@pytest.mark.parametrize("change", ["value", "expiration", "unsigned", "no owner"])
def test_a_changed_record_is_not_counted(alice: SwarmKey, change: str) -> None:
    record = signed(alice, progress_of(alice, samples_accumulated=96))
    changed = {
        "value": raw(record)._replace(value=record.value.replace(b"\x60", b"\x61", 1)),
        "expiration": raw(record)._replace(expiration_time=record.expiration_time + 60),
        "unsigned": raw(record)._replace(value=dumps(progress_of(alice))),
        "no owner": raw(record)._replace(subkey=dumps(b"[owner:ssh-rsa AAAA]")),
    }[change]
    assert ProgressReader(alice).read(raw(record)) is not None
    assert ProgressReader(alice).read(changed) is None


@pytest.mark.parametrize(
    "value",
    [
        7,
        "text",
        {},
        {"epoch": -1},
        {"epoch": 3.5},
        {"peer_id": b"\x00"},
        {"time": float("inf")},
        {"time": "soon"},
    ],
)
def test_signed_nonsense_is_not_counted(alice: SwarmKey, value: object) -> None:
    if isinstance(value, dict) and value:
        value = progress_of(alice, **value)
    reader = ProgressReader(alice)
    found = reader.read(raw(signed(alice, value)))
    assert found is None or found.peer_id != alice.peer_id


def test_an_infinite_rate_counts_as_none(alice: SwarmKey) -> None:
    value = progress_of(alice, samples_per_second=float("inf"))
    found = ProgressReader(alice).read(raw(signed(alice, value)))
    assert found is not None
    assert found.samples_per_second == 0.0


def test_a_peer_that_leaves_takes_its_record_back(alice: SwarmKey) -> None:
    found = ProgressReader(alice).read(raw(signed(alice, None)))
    assert found is not None
    assert found.left
    assert found.key_thumbprint == alice.thumbprint


def test_a_record_fetched_later_is_as_old_as_it_is(alice: SwarmKey) -> None:
    reader = ProgressReader(alice)
    fresh = reader.read(raw(signed(alice, progress_of(alice, time=now() - 2))))
    old = reader.read(raw(signed(alice, progress_of(alice, time=now() - 40))))
    assert fresh is not None
    assert old is not None
    assert fresh.received_at - old.received_at > timedelta(seconds=39)


def wait_for(recorder: ProgressRecorder, number: int) -> list[RawRecord]:
    """Return what was recorded; the queue's own thread needs a moment."""
    found: list[RawRecord] = []
    end = now() + 10
    while len(found) < number and now() < end:
        found += recorder.drain()
    return found


def test_the_node_id_is_the_key_of_the_progress_records() -> None:
    assert progress_node_id(RUN) == DHTID.generate(source="demo-1_progress")
