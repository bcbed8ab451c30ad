"""Which records a peer stores: ours, a stock trainer's, and no others."""

import math
from pathlib import Path
from typing import Any

import pytest
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.utils.timed_storage import get_dht_time

from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.names import metrics_key, progress_key
from training.swarm.identity import owner_subkey
from training.swarm.schema import validators

RUN = "bees-1"
STOCK: dict[str, Any] = {
    "step": 3,
    "samples_per_second": 12.5,
    "samples_accumulated": 64,
    "loss": 9.5,
    "mini_steps": 4,
}
SIGNED = STOCK | {"jws": "a.b.c"}
PROGRESS = {
    "peer_id": b"peer",
    "epoch": 3,
    "samples_accumulated": 64,
    "samples_per_second": 12.5,
    "time": 1.0,
    "client_mode": False,
}


def is_taken(
    folder: Path,
    value: object,
    *,
    key: str = metrics_key(RUN),
    subkey: bytes | None = None,
    signer: SwarmKey | None = None,
) -> bool:
    """Return whether another peer would store a record that ``signer`` made."""
    mine = swarm_key_load_or_create(folder / "swarm.key")
    dump = DHTProtocol.serializer.dumps
    record = DHTRecord(
        DHTID.generate(source=key).to_bytes(),
        dump(subkey if subkey is not None else owner_subkey(mine)),
        dump(value),
        get_dht_time() + 60,
    )
    signed = CompositeValidator(validators(signer or mine, RUN)).sign_value(record)
    reader = swarm_key_load_or_create(folder / "reader.key")
    checks = CompositeValidator(validators(reader, RUN))
    return bool(
        checks.validate(DHTRecord(record.key, record.subkey, signed, record.expiration_time))
    )


@pytest.mark.parametrize("value", [STOCK, SIGNED])
def test_metrics_with_and_without_signature_are_stored(tmp_path: Path, value: object) -> None:
    assert is_taken(tmp_path, value)


def test_training_progress_is_stored(tmp_path: Path) -> None:
    assert is_taken(tmp_path, PROGRESS, key=progress_key(RUN))
    assert not is_taken(tmp_path, STOCK, key=progress_key(RUN))


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1},
        {"step": 1.0},
        {"step": True},
        {"samples_per_second": 1},
        {"samples_per_second": -1.0},
        {"samples_per_second": math.inf},
        {"loss": math.nan},
        {"loss": math.inf},
        {"loss": "low"},
        {"jws": "x" * 16_385},
        {"jws": None},
        {"more": 1},
    ],
)
def test_malformed_metrics_are_not_stored(tmp_path: Path, change: dict[str, object]) -> None:
    assert not is_taken(tmp_path, SIGNED | change)


def test_a_field_must_not_be_missing(tmp_path: Path) -> None:
    assert not is_taken(tmp_path, {k: v for k, v in STOCK.items() if k != "loss"})


def test_nobody_writes_under_anothers_key(tmp_path: Path) -> None:
    mallory = swarm_key_load_or_create(tmp_path / "mallory.key")
    victim = owner_subkey(swarm_key_load_or_create(tmp_path / "swarm.key"))
    assert is_taken(tmp_path, STOCK, subkey=victim)
    assert not is_taken(tmp_path, STOCK, subkey=victim, signer=mallory)


def test_metrics_need_an_owner(tmp_path: Path) -> None:
    assert not is_taken(tmp_path, STOCK, subkey=b"anyone")
