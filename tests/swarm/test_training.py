"""Real trainers: they train together, come late, die, and leave nothing behind."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.peers import Peer, config_make, dht_peer
from tests.swarm.processes import ROOT, end_session, session_members, wait_until
from training.client.status import status_read
from training.protocol.config import ReportConfig, RunConfig
from training.protocol.envelope import peek_body
from training.protocol.metrics import PeerMetrics
from training.swarm.dht import metrics_read

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(240)]
CONFIG = config_make(target_batch_size=1024, average_state_every=3).model_copy(
    update={"report": ReportConfig(publish_seconds=0.5)}
)


class Trainers:
    """Trainer processes of one run, each in a session of its own."""

    def __init__(self, folder: Path, entrance: Peer) -> None:
        self.folder, self.entrance = folder, entrance
        self.addresses = entrance.addresses
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *, min_epoch: int = 0, config: RunConfig = CONFIG) -> None:
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.json").write_text(config.model_dump_json())
        words = ["-m", "tests.swarm.trainer_process", str(home), str(min_epoch), *self.addresses]
        with (home / "output.log").open("ab") as output:
            self.running[name] = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                stdout=output,
                stderr=output,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )

    def events(self, name: str, kind: str) -> list[dict[str, Any]]:
        path = self.folder / name / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines[:-1]) if event["kind"] == kind]

    def finished(self, name: str) -> list[str]:
        """Return what a trainer said of its finished epochs."""
        lines = [event["text"] for event in self.events(name, "line")]
        return [text for text in lines if text.startswith("epoch ")]

    def wait_epochs(self, name: str, number: int, *, group: int | None = None) -> None:
        """Wait for that many more finished epochs, averaged in a group of that size."""
        had = len(self.finished(name))
        wait_until(
            f"{number} epochs of {name} in a group of {group}",
            lambda: (
                len([line for line in self.finished(name)[had:] if group in (None, group_of(line))])
                >= number
            ),
            seconds=120,
        )

    def output(self, name: str) -> str:
        return (self.folder / name / "output.log").read_text()

    def stop(self, name: str) -> float:
        """Ask a trainer to leave; return the seconds it took. It must leave nothing behind."""
        process = self.running.pop(name)
        started = time.monotonic()
        process.terminate()
        assert process.wait(30) == 0, self.output(name)
        took = time.monotonic() - started
        assert remaining(process.pid) == []
        return took

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(10)
            end_session(process.pid)


def fall(trainers: Trainers, name: str) -> float:
    """Return by which share a trainer's loss has fallen since its first report."""
    losses = [event["loss"] for event in trainers.events(name, "progress") if event["loss"]]
    return 1 - float(losses[-1]) / float(losses[0])


def group_of(line: str) -> int:
    return int(line.split("averaged by ")[1].split()[0])


def remaining(leader: int, *, seconds: float = 5) -> list[str]:
    """Return what is left of a session after a moment."""
    end = time.monotonic() + seconds
    while (pids := session_members(leader)) and time.monotonic() < end:
        time.sleep(0.1)
    return [Path(f"/proc/{pid}/comm").read_text() for pid in pids]


@pytest.fixture
def trainers(tmp_path: Path) -> Iterator[Trainers]:
    with dht_peer(tmp_path / "entrance", CONFIG) as entrance:
        found = Trainers(tmp_path, entrance)
        try:
            yield found
        finally:
            found.close()


def test_two_trainers_train_together_and_leave_nothing_behind(trainers: Trainers) -> None:
    for name in ("alice", "bob"):
        trainers.start(name)
    trainers.wait_epochs("alice", 4, group=2)

    records = metrics_read(trainers.entrance.dht, run_id=CONFIG.swarm_id, timeout=5)
    reports = [PeerMetrics.model_validate(strip(peek_body(record.jws))) for record in records]
    assert len(reports) == 2
    for record, report in zip(records, reports, strict=True):
        assert report.samples_total > 0
        assert report.recent
        assert record.numbers.loss == pytest.approx(report.loss)
    wait_until("the loss falls by 5 %", lambda: fall(trainers, "alice") > 0.05, seconds=90)

    seconds = [trainers.stop(name) for name in ("alice", "bob")]
    assert max(seconds) < 10
    for name in ("alice", "bob"):
        assert trainers.output(name) == "", "nothing of hivemind reaches the terminal"
        status = status_read(trainers.folder / name / "status.json")
        assert status is not None
        assert (status.phase, status.error) == ("leaving", None)
        assert status.samples_total > 0


def test_a_late_trainer_takes_over_and_a_killed_one_stalls_nobody(trainers: Trainers) -> None:
    trainers.start("alice")
    trainers.wait_epochs("alice", 2, group=1)
    trainers.start("bob")
    trainers.wait_epochs("bob", 2, group=2)
    first = int(trainers.finished("bob")[0].split()[1])
    assert first >= 2, "a newcomer must not begin at epoch 0"

    killed = trainers.running.pop("bob")
    killed.kill()
    killed.wait(10)
    assert remaining(killed.pid) == [], "children die with a trainer that was killed"
    started = time.monotonic()
    trainers.wait_epochs("alice", 2)
    # An epoch takes one trainer 13 s; the dead peer may cost it one search for a group.
    assert time.monotonic() - started < 45
    trainers.wait_epochs("alice", 1, group=1)
    waits = [float(line.split(" in ")[-1].split()[0]) for line in trainers.finished("alice")]
    assert waits[-1] < 3, "alone again, it does not wait for others"

    trainers.start("bob")
    trainers.wait_epochs("bob", 1, group=2)


def test_a_trainer_never_starts_anew_beside_a_run(trainers: Trainers) -> None:
    trainers.start("alice", min_epoch=7)
    wait_until(
        "the trainer to wait for a state",
        lambda: any("waiting for a newer" in e["text"] for e in trainers.events("alice", "phase")),
    )
    time.sleep(3)
    assert trainers.events("alice", "progress") == []
    status = status_read(trainers.folder / "alice" / "status.json")
    assert status is not None
    assert status.phase == "syncing"
    assert trainers.stop("alice") < 10


def test_a_run_ends_at_its_last_epoch_and_pauses_when_told(trainers: Trainers) -> None:
    config = CONFIG.model_copy(update={"max_epochs": 2})
    trainers.start("alice", config=config)
    wait_until("training", lambda: trainers.events("alice", "progress"))
    pause = trainers.folder / "alice" / "pause"
    pause.touch()
    wait_until("the pause", lambda: trainers.events("alice", "phase")[-1]["text"] == "paused")
    file = trainers.folder / "alice" / "status.json"
    wait_until("a paused status", lambda: (s := status_read(file)) and s.phase == "paused")
    status = status_read(file)
    assert status is not None
    before = status.samples_total
    time.sleep(3)
    status = status_read(file)
    assert status is not None
    assert (status.phase, status.samples_total) == ("paused", before)
    pause.unlink()
    wait_until(
        "the last epoch",
        lambda: any("last epoch" in e["text"] for e in trainers.events("alice", "line")),
        seconds=120,
    )
    process = trainers.running.pop("alice")
    process.terminate()
    assert process.wait(20) == 7
    assert remaining(process.pid) == []


def strip(body: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in body.items() if k not in ("iss", "iat", "exp", "jti")}
