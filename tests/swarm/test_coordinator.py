"""A coordinator and real trainers: what they did is what the site is told."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.processes import Swarm, config_make, port_answers, session_members, wait_until
from training.client.status import status_read
from training.protocol.config import (
    CheckpointConfig,
)
from training.protocol.envelope import peek_body
from training.protocol.states import Reach

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(300)]

CONFIG = config_make(
    {"target_batch_size": 360}, checkpoint=CheckpointConfig(every_epochs=2, keep=2)
)


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    swarm = Swarm(tmp_path, CONFIG)
    yield swarm
    swarm.close()


def wait_for_epochs(swarm: Swarm, number: int) -> None:
    known = swarm.site.ledger()

    def are_there() -> bool:
        swarm.check_alive()
        return len(swarm.site.ledger()) >= len(known) + number

    wait_until(f"{number} more epochs in the ledger", are_there, seconds=120)


def same(ledger: dict[int, dict[str, int]], truth: dict[int, dict[str, int]]) -> bool:
    """Whether the ledger is the truth, as far as it goes; an entry of 0 is none."""
    real = {e: {k: n for k, n in rows.items() if n} for e, rows in truth.items()}
    return bool(ledger) and all(rows == real.get(epoch) for epoch, rows in ledger.items())


def test_the_ledger_is_what_entered_the_averages_and_leaving_is_clean(swarm: Swarm) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=40)
    swarm.start_trainer("bob", speed=20)
    wait_for_epochs(swarm, 3)
    assert same(swarm.site.ledger(), swarm.truth("alice", "bob"))
    assert sorted(swarm.site.ledger()) == [0, 1, 2]
    snapshot = swarm.site.snapshot
    assert snapshot is not None
    assert len([peer for peer in snapshot.peers if peer.jws]) == 2
    assert {peer.reach for peer in snapshot.peers} == {Reach.DIRECT}
    assert snapshot.loss is not None
    assert len(snapshot.bootstrap_peers) == 3
    assert swarm.address in snapshot.bootstrap_peers
    status = status_read(swarm.folder / "coordinator" / "work" / "status.json")
    assert status is not None
    assert (status.phase, status.role.value) == ("training", "coordinator")
    leader = swarm.running["coordinator"].pid
    wait_until("a later epoch", lambda: reached(swarm, max(swarm.site.checkpoints) + 1))
    assert swarm.stop("coordinator", seconds=20) == 0
    assert session_members(leader) == []
    assert not port_answers(swarm.port)
    last = swarm.site.snapshot
    assert last is not None
    assert swarm.site.checkpoints[-1] >= last.epoch - 1
    for name in ("alice", "bob"):
        assert swarm.stop(name) == 0


def stated(swarm: Swarm, name: str) -> set[int]:
    """Return the finished epochs in a trainer's signed metrics, as the coordinator saw them."""
    key, snapshot = swarm.thumbprint(name), swarm.site.snapshot
    peers = [p for p in snapshot.peers if p.key_thumbprint == key and p.jws] if snapshot else []
    return {item["epoch"] for peer in peers for item in peek_body(peer.jws)["recent"]}


def reached(swarm: Swarm, epoch: int) -> bool:
    snapshot = swarm.site.snapshot
    return snapshot is not None and snapshot.epoch >= epoch


def test_no_epoch_is_lost_or_doubled_when_site_and_coordinator_go_away(swarm: Swarm) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=40)
    swarm.start_trainer("bob", speed=20)
    wait_for_epochs(swarm, 2)
    swarm.site.set_down(True)
    first = max(swarm.truth("alice"))
    wait_until("an epoch without the site", lambda: max(swarm.truth("alice")) > first)
    swarm.kill("coordinator")
    before = max(swarm.truth("alice"))
    wait_until("two epochs alone", lambda: max(swarm.truth("alice")) >= before + 2, seconds=90)
    swarm.start_coordinator()
    swarm.site.set_down(False)
    wait_until("the ledger to catch up", lambda: max(swarm.site.ledger()) > before + 2, seconds=90)
    ledger = swarm.site.ledger()
    assert sorted(ledger) == list(range(max(ledger) + 1))
    assert same(ledger, swarm.truth("alice", "bob"))
    state = swarm.site.state
    assert state["repeats"] == 0
    assert state["seqs"] == sorted(set(state["seqs"]))
    assert state["epochs"] == sorted(state["epochs"])


def test_a_trainer_killed_in_mid_epoch_gets_nothing_for_it(swarm: Swarm) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=40)
    swarm.start_trainer("bob", speed=20)
    wait_for_epochs(swarm, 2)
    epoch = max(swarm.truth("bob")) + 1
    wait_until("bob's word on one more epoch", lambda: epoch in stated(swarm, "bob"), seconds=60)
    swarm.kill("bob")
    epoch = max(swarm.truth("bob"))
    wait_until("alice to go on", lambda: max(swarm.site.ledger()) > epoch + 1, seconds=120)
    assert same(swarm.site.ledger(), swarm.truth("alice", "bob"))
    key = next(iter(swarm.truth("bob")[epoch]))
    assert key in swarm.site.ledger()[epoch]
    assert key not in swarm.site.ledger()[epoch + 1]


def test_an_empty_swarm_goes_on_from_the_newest_checkpoint_that_is_whole(swarm: Swarm) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=90)
    wait_until("checkpoints 2 and 4", lambda: set(swarm.site.checkpoints) >= {2, 4}, seconds=120)
    for name in ("alice", "coordinator"):
        swarm.kill(name)
    folder = swarm.folder / "coordinator" / "checkpoints"
    newest = sorted(path.name for path in folder.iterdir())[-1]
    (folder / newest / "model.safetensors").write_bytes(b"half a fi")
    kept = int(sorted(path.name for path in folder.iterdir())[-2].split("-")[1])
    assert kept >= 2
    (swarm.folder / "alice" / "started").unlink()
    seen = len(swarm.site.state["epochs"])
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=90)
    swarm.start_trainer("bob", speed=20)
    assert swarm.started_at_epoch("alice") == kept
    assert swarm.started_at_epoch("bob") >= kept
    wait_until("the next epoch", lambda: reached(swarm, kept + 1))
    assert min(swarm.site.state["epochs"][seen:]) >= kept
    assert f"{newest} is skipped" in (swarm.folder / "coordinator" / "coordinator.log").read_text()


def test_a_stock_trainer_in_an_open_run_shows_unverified_and_is_counted(tmp_path: Path) -> None:
    open_to_all = CONFIG.swarm.model_copy(update={"admission": "open"})
    swarm = Swarm(tmp_path, CONFIG.model_copy(update={"swarm": open_to_all}))
    try:
        swarm.start_coordinator()
        swarm.start_trainer("charlie", "--stock", speed=90)
        stock_trainer_is_counted(swarm)
    finally:
        swarm.close()


def stock_trainer_is_counted(swarm: Swarm) -> None:
    wait_for_epochs(swarm, 2)
    assert same(swarm.site.ledger(), swarm.truth("charlie"))
    snapshot = swarm.site.snapshot
    assert snapshot is not None
    assert [(peer.jws, peer.epoch >= 2) for peer in snapshot.peers] == [("", True)]
    assert snapshot.samples_per_second > 0


def test_lost_files_do_not_prevent_a_start_into_the_same_swarm(swarm: Swarm) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=90)
    wait_for_epochs(swarm, 2)
    work = swarm.folder / "coordinator" / "work"
    wait_until("alice to be remembered", (work / "known_peers.json").exists)
    swarm.kill("coordinator")
    for name in ("journal.json", "snapshot_number.json", "registered.json"):
        (work / name).write_text("{")
    number = swarm.site.state["seq"]
    # An address where nobody answers, beside the one that was remembered.
    swarm.start_coordinator("/ip4/127.0.0.1/tcp/9/p2p/" + swarm.key.peer_id[::-1])
    wait_for_epochs(swarm, 2)
    ledger = swarm.site.ledger()
    assert sorted(ledger) == list(range(max(ledger) + 1))
    assert same(ledger, swarm.truth("alice"))
    assert swarm.site.state["seq"] > number


def test_a_port_in_use_is_told_in_a_sentence(swarm: Swarm) -> None:
    with socket.socket() as ghost:
        ghost.bind(("127.0.0.1", swarm.port))
        ghost.listen()
        swarm.start_coordinator()
        assert swarm.running["coordinator"].wait(30) == 4
    work = swarm.folder / "coordinator" / "work"
    status = json.loads((work / "status.json").read_text())
    assert status["error"]["detail"] == f"port {swarm.port} is in use"
    assert status["error"]["remedy"]


def test_a_coordinator_without_its_swarm_process_ends_to_be_started_again(swarm: Swarm) -> None:
    swarm.start_coordinator()
    wait_until("a first snapshot", lambda: swarm.site.snapshot is not None)
    process = swarm.running["coordinator"]
    (daemon,) = (pid for pid in session_members(process.pid) if name_of(pid) == "p2pd")
    os.kill(daemon, signal.SIGKILL)
    assert process.wait(60) == 4
    assert session_members(process.pid) == []
    log = (swarm.folder / "coordinator" / "coordinator.log").read_text()
    assert "peer-to-peer process ended" in log


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
