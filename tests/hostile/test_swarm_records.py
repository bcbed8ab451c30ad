"""One peer's made-up records change nothing for the others: dropped, or carried on in bounds."""

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.validation import DHTRecord
from hivemind.utils.timed_storage import ValueWithExpiration
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hostile.bytes_of_strangers import NUMBERS, json_values
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.coordinator.aggregate import snapshot_make, swarm_figures
from training.coordinator.observe import SwarmView
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.metrics import PeerMetrics, SwarmSnapshot
from training.protocol.names import TYP_METRICS, TYP_SNAPSHOT
from training.swarm.dht import metrics_read
from training.swarm.identity import owner_public_der, owner_subkey, rsa_key
from training.swarm.nesting import nesting_bound
from training.swarm.recorder import ProgressReader, RawRecord, progress_node_id
from training.swarm.records import MetricsRecord, ProgressRecord

CONFIG = RunConfig(run="demo", title="Demo", version=1, task=TaskConfig(name="tiny"))
NOW = datetime(2030, 1, 1, tzinfo=UTC)
DEVICE = key_generate()
edges = st.sampled_from(
    [n for n in NUMBERS if not isinstance(n, int) or (n < 2**64 and n >= -(2**63))]
)


@pytest.fixture(scope="module")
def mallory(tmp_path_factory: pytest.TempPathFactory) -> SwarmKey:
    return swarm_key_load_or_create(tmp_path_factory.mktemp("mallory") / "swarm.key")


@pytest.fixture(scope="module")
def read(mallory: SwarmKey) -> Callable[[bytes], ProgressRecord | None]:
    """Read bytes as the progress record of somebody who signs whatever he likes."""
    signer, reader = RSASignatureValidator(rsa_key(mallory)), ProgressReader(mallory)
    place = progress_node_id(CONFIG.swarm_id).to_bytes()
    subkey = DHTProtocol.serializer.dumps(owner_subkey(mallory))

    def read_bytes(value: bytes) -> ProgressRecord | None:
        expires = NOW.timestamp() + 60
        signed = signer.sign_value(DHTRecord(place, subkey, value, expires))
        return reader.read(RawRecord(NOW.timestamp(), place, subkey, signed, expires))

    return read_bytes


def packed(value: Any) -> bytes:
    return bytes(msgpack.packb(value, use_bin_type=True))


def told(
    progress: Sequence[ProgressRecord] = (), metrics: Sequence[MetricsRecord] = ()
) -> SwarmSnapshot:
    """Return what a coordinator makes of records; it must be able to sign it."""
    view = SwarmView(CONFIG)
    for record in progress:
        view.take_progress(record)
    view.take_metrics(metrics, NOW)
    views = view.peers(NOW)
    figures = swarm_figures(views, NOW, last_epoch=0, metrics_seconds=10)
    snapshot = snapshot_make(
        CONFIG, figures, views=views, seq=1, now=NOW, pending=(), bootstrap_peers=()
    )
    hour = timedelta(hours=1)
    assert sign(snapshot, typ=TYP_SNAPSHOT, key=DEVICE, issuer="x", lifetime=hour, now=NOW)
    return snapshot


def tuples_in_tuples(depth: int) -> bytes:
    """Return what hivemind's reader unpacks by calling itself, ``depth`` times."""
    data = packed([])
    for _ in range(depth):
        data = b"\xc9" + struct.pack(">I", len(data)) + b"\x40" + data
    return data


def test_a_value_of_tuples_in_tuples_does_not_end_the_process() -> None:
    """Alone in a process: a reader without a bound dies of a segmentation fault."""
    lines = (
        "import sys",
        "from hivemind.dht.protocol import DHTProtocol",
        "from training.swarm.nesting import nesting_bound",
        "nesting_bound()",
        "try:",
        "    DHTProtocol.serializer.loads(bytes.fromhex(sys.stdin.read()))",
        "except ValueError as error:",
        "    print(error)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        input=tuples_in_tuples(1300).hex(), capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (
        0, "a value is nested deeper than 16 levels",
    ), done.stderr[-500:]  # fmt: skip


def test_values_nested_as_swarms_nest_them_are_still_read() -> None:
    nesting_bound()
    nesting_bound()
    dumps, loads = DHTProtocol.serializer.dumps, DHTProtocol.serializer.loads
    for value in (((1, (2, 3)), {"a": (4,)}), [((),)] * 100, "text", b"bytes"):
        assert loads(dumps(value)) == value
        assert loads(dumps(value)) == value


@given(value=st.binary(max_size=300))
@example(value=tuples_in_tuples(1300))
@example(value=b"\x91" * 5000)
@example(value=b"\xdf\xff\xff\xff\xff")
def test_bytes_that_are_no_record_are_dropped(
    read: Callable[[bytes], ProgressRecord | None], value: bytes
) -> None:
    record = read(value)
    assert record is None or record.left


PROGRESS = st.fixed_dictionaries(
    {
        "peer_id": st.binary(max_size=100) | st.just(b"\x12 " + b"x" * 32) | json_values,
        "epoch": edges | st.integers(0, 2**64 - 1),
        "samples_accumulated": edges | st.integers(0, 2**64 - 1),
        "samples_per_second": edges | st.floats(),
        "time": edges | st.floats() | st.just(NOW.timestamp()),
        "client_mode": st.booleans(),
    }
)


def progress_of(**changes: Any) -> dict[str, Any]:
    return {
        "peer_id": b"\x12 " + b"x" * 32,
        "epoch": 1,
        "samples_accumulated": 1,
        "samples_per_second": 1.0,
        "time": NOW.timestamp(),
        "client_mode": False,
    } | changes


@given(value=PROGRESS)
@example(value=progress_of(peer_id=b"x" * 5000))
@example(value=progress_of(epoch=2**63))
@example(value=progress_of(samples_accumulated=2**64 - 1))
@example(value=progress_of(samples_per_second=1e300))
@example(value=progress_of(time=1e18))
@example(value=progress_of(time=-1e18))
@example(value=progress_of(time=253402300799.0))
def test_a_signed_record_of_any_numbers_leaves_a_report_that_can_be_sent(
    read: Callable[[bytes], ProgressRecord | None], value: dict[str, Any]
) -> None:
    try:
        record = read(packed(value))
    except (ValueError, OverflowError, UnicodeEncodeError):
        pytest.fail("the reader let an error through")
    if record is not None:
        told(progress=[record])


def metrics_record(key: SwarmKey, value: Any, expires: float) -> list[MetricsRecord]:
    """Return what is read of a DHT that answers with ``value``."""
    answer: Future[Any] = Future()
    entry = ValueWithExpiration(value, expires)
    answer.set_result(ValueWithExpiration({owner_subkey(key): entry}, expires))

    class Dht:
        def get(self, *args: Any, **options: Any) -> Future[Any]:
            return answer

    return metrics_read(Dht(), run_id=CONFIG.swarm_id, timeout=1)  # type: ignore[arg-type]


METRICS = st.fixed_dictionaries(
    {
        name: edges | st.integers(0, 2**64 - 1) | st.floats()
        for name in ("step", "samples_per_second", "samples_accumulated", "loss", "mini_steps")
    },
    optional={"jws": st.text(max_size=50) | json_values},
)


@given(value=METRICS | json_values, expires=st.floats() | edges)
@example(value={}, expires=0.0)
@example(
    value={
        "step": 2**64 - 1,
        "samples_per_second": 1e18,
        "samples_accumulated": 2**64 - 1,
        "loss": 1.0,
        "mini_steps": 1,
    },
    expires=float("inf"),
)
def test_any_metrics_value_leaves_a_report_that_can_be_sent(
    mallory: SwarmKey, value: Any, expires: float
) -> None:
    told(metrics=metrics_record(mallory, value, expires))


@given(body=json_values | st.fixed_dictionaries({"taken_at": json_values, "epoch": json_values}))
@example(body={"taken_at": "0001-01-01T00:00:00+14:00"})
@example(body={"taken_at": "9999-12-31T23:59:59-14:00"})
def test_metrics_that_a_device_signed_at_will_are_counted_as_malformed(
    mallory: SwarmKey, body: Any
) -> None:
    good = PeerMetrics(
        run="demo", lineage=1, peer_id=mallory.peer_id, config_version=1, epoch=1,
        samples_accumulated=1, samples_total=1, samples_per_second=1.0, taken_at=NOW,
    )  # fmt: skip

    class Changed(PeerMetrics):
        def model_dump(self, **options: Any) -> dict[str, Any]:
            changed: dict[str, Any] = super().model_dump(**options)
            return changed | (body if isinstance(body, dict) else {"epoch": body})

    hour = timedelta(hours=1)
    try:
        jws = sign(
            Changed.model_validate(good.model_dump()),
            typ=TYP_METRICS, key=DEVICE, issuer="x", lifetime=hour, now=NOW,
        )  # fmt: skip
    except ValueError:
        return  # not JSON
    value = {"step": 1, "samples_per_second": 1.0, "samples_accumulated": 1, "loss": 1.0,
             "mini_steps": 1, "jws": jws}  # fmt: skip
    told(metrics=metrics_record(mallory, value, NOW.timestamp() + 60))


@given(st.binary(max_size=200))
@example(b"[owner:ssh-rsa AAAA]")
@example(
    b"[owner:ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA]"
)
@example(b"[owner:ssh-dss AAAAB3NzaC1kc3M=]")
@example(b"[owner:sk-ssh-ed25519@openssh.com AAAA]")
def test_a_subkey_without_an_rsa_owner_has_no_owner(subkey: bytes) -> None:
    assert owner_public_der(subkey) is None


def test_a_good_record_is_still_read(
    read: Callable[[bytes], ProgressRecord | None], tmp_path: Path
) -> None:
    record = read(packed(progress_of(epoch=3, samples_accumulated=70)))
    assert record is not None
    (peer,) = told(progress=[record]).peers
    assert (peer.epoch, peer.samples_accumulated) == (3, 70)
