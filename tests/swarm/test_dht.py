"""A DHT peer: records, addresses, and clear words when it cannot start."""

import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.swarm.peers import config_make, dht_peer
from tests.swarm.processes import ROOT, free_port, session_members
from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.metrics import PeerMetrics
from training.swarm.dht import SwarmError, dht_start, metrics_read, metrics_store

pytestmark = pytest.mark.swarm
CONFIG = config_make()
RUN = CONFIG.swarm_id


def metrics(loss: float | None, steps: int) -> PeerMetrics:
    return PeerMetrics(
        run="tiny",
        lineage=1,
        peer_id="peer",
        config_version=1,
        epoch=2,
        samples_accumulated=64,
        samples_total=640,
        samples_per_second=12.5,
        loss=loss,
        mini_steps=steps,
        taken_at=datetime.now(UTC),
    )


def test_metrics_travel_between_peers(tmp_path: Path) -> None:
    with (
        dht_peer(tmp_path / "alice", CONFIG) as alice,
        dht_peer(tmp_path / "bob", CONFIG, alice.addresses) as bob,
        dht_peer(tmp_path / "carol", CONFIG, alice.addresses, client_mode=True) as carol,
    ):
        assert metrics_read(alice.dht, run_id=RUN, timeout=10) == []
        for peer, told in ((bob, metrics(2.5, 8)), (carol, metrics(None, 0))):
            stored = metrics_store(
                peer.dht,
                run_id=RUN,
                key=peer.key,
                metrics_jws=f"jws of {peer.key.peer_id}",
                metrics=told,
                expires_seconds=60,
            )
            assert stored.result(10)
        records = {r.thumbprint: r for r in metrics_read(alice.dht, run_id=RUN, timeout=10)}
        of_bob, of_carol = (records[peer.key.thumbprint] for peer in (bob, carol))
        assert of_bob.public_der == bob.key.public_der
        assert of_bob.jws == f"jws of {bob.key.peer_id}"
        assert (of_bob.numbers.loss, of_bob.numbers.step) == (2.5, 2)
        assert 50 < of_bob.expires_at - time.time() < 61
        assert of_carol.numbers.loss is None
        assert alice.addresses[0].endswith(f"/p2p/{alice.key.peer_id}")


def test_failures_to_start_are_told_in_a_sentence(tmp_path: Path) -> None:
    stranger = swarm_key_load_or_create(tmp_path / "stranger.key").peer_id
    with dht_peer(tmp_path / "alice", CONFIG) as alice, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cases = [
            ("is in use", [], taken.getsockname()[1], tmp_path / "bob.key"),
            ("already|in use by another", alice.addresses, 0, alice.key.path),
            ("peers answered", [f"/ip4/127.0.0.1/tcp/{free_port()}/p2p/{stranger}"], 0, None),
        ]
        for text, peers, port, path in cases:
            key = swarm_key_load_or_create(path or tmp_path / "carol.key")
            with pytest.raises(SwarmError, match=text) as caught:
                dht_start(
                    key=key,
                    run_id=RUN,
                    initial_peers=peers,
                    bind="127.0.0.1",
                    port=port,
                    client_mode=False,
                )
            assert caught.value.remedy


def test_stopping_ends_every_process(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with dht_peer(tmp_path, CONFIG):
        names = {p.name() for p in set(psutil.Process().children(recursive=True)) - before}
        assert "p2pd" in names
    after = {p for p in set(psutil.Process().children(recursive=True)) - before if is_alive(p)}
    assert {p.name() for p in after} <= {"torch_shm_manager"}


CHILD = """
import sys, time
from pathlib import Path
from tests.swarm.peers import config_make, dht_peer
with dht_peer(Path(sys.argv[1]), config_make()):
    print("up", flush=True)
    time.sleep(60)
"""


def test_a_killed_peer_takes_its_daemon_with_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=os.environ,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(session_members(process.pid)) >= 3
        process.kill()
        process.wait(10)
        end = time.monotonic() + 10
        while session_members(process.pid):
            assert time.monotonic() < end, "the daemon lives on"
            time.sleep(0.1)


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
