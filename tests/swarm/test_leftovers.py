"""Only what is surely dead, old and our own is removed."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.swarm.peers import config_make, dht_peer
from training.swarm.dht import metrics_read
from training.swarm.leftovers import leftovers_clean

LATER = time.time() + 3600


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_segments_of_dead_processes_go_and_others_stay(tmp_path: Path, dead_pid: int) -> None:
    gone, alive = f"torch_{dead_pid}_12_0", f"torch_{os.getpid()}_12_0"
    for name in (gone, alive, "torch_x", "other"):
        (tmp_path / name).touch()
    assert leftovers_clean(shared_memory=tmp_path, sockets=tmp_path, now=LATER) == 1
    assert names(tmp_path) == {alive, "torch_x", "other"}


def test_young_files_stay(tmp_path: Path, dead_pid: int) -> None:
    (tmp_path / f"torch_{dead_pid}_12_0").touch()
    assert leftovers_clean(shared_memory=tmp_path, sockets=tmp_path) == 0


def test_sockets_that_nobody_answers_go(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as dead:
        server.bind(str(tmp_path / "hivemind-alive.sock"))
        server.listen()
        dead.bind(str(tmp_path / "hivemind-dead.sock"))
        dead.close()
        assert leftovers_clean(shared_memory=tmp_path, sockets=tmp_path, now=LATER) == 1
        assert names(tmp_path) == {"hivemind-alive.sock"}


def test_no_folder_is_no_trouble(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert leftovers_clean(shared_memory=nowhere, sockets=nowhere) == 0


@pytest.mark.swarm
def test_a_living_peer_survives_the_cleaning_of_another(tmp_path: Path) -> None:
    config = config_make()
    with dht_peer(tmp_path, config) as peer:
        for _ in range(3):
            leftovers_clean(now=LATER)
        assert metrics_read(peer.dht, run_id=config.swarm_id, timeout=10) == []
        assert peer.addresses
