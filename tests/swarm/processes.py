"""Coordinators and trainers in sessions of their own, for tests that kill them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.swarm.stand_in_site import StandInSite
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.config import (
    OptimizerConfig,
    ReportConfig,
    RunConfig,
    SwarmConfig,
    TaskConfig,
)

ROOT = Path(__file__).parents[2]


def config_make(swarm: dict[str, Any], **parts: Any) -> RunConfig:
    """Return a config of the tiny task with quick rounds and reports; passes are demanded."""
    quick: dict[str, Any] = {
        "matchmaking_seconds": 1.5,
        "request_timeout_seconds": 1.0,
        "averaging_timeout_seconds": 15,
        "compression": "none",
    }
    report = ReportConfig(publish_seconds=0.5, snapshot_seconds=0.5)
    return RunConfig(
        run="demo",
        title="Demo",
        version=1,
        task=TaskConfig(name="tiny"),
        optimizer=OptimizerConfig(learning_rate=0.01),
        swarm=SwarmConfig(**(quick | swarm)),
        **({"report": report} | parts),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: str, is_so: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait for something, or fail by its name."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for: {what}"
        time.sleep(0.2)


class Swarm:
    """A coordinator and trainers of one run, below one folder."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder, self.config, self.port = folder, config, free_port()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.site = StandInSite(folder / "coordinator" / "site")
        self.key = swarm_key_load_or_create(self._home("coordinator") / "swarm.key")
        self.address = f"/ip4/127.0.0.1/tcp/{self.port}/p2p/{self.key.peer_id}"

    def start_coordinator(self, *peers: str) -> None:
        home = self._home("coordinator")
        self._start("coordinator", "coordinator_process", str(home), str(self.port), *peers)
        wait_until("the coordinator to answer", lambda: port_answers(self.port))

    def start_trainer(
        self, name: str, *words: str, speed: float = 40, peers: Sequence[str] = ()
    ) -> None:
        """``words``: options of the small trainer; ``peers``: entrances beside the coordinator."""
        home, site = str(self._home(name)), str(self.site.folder)
        options = ["--site", site, *words]
        self._start(name, "small_trainer", home, str(speed), *options, self.address, *peers)

    def key_of(self, name: str) -> SwarmKey:
        return swarm_key_load_or_create(self._home(name) / "swarm.key")

    def started_at_epoch(self, name: str) -> int:
        """Wait for a trainer's first micro-step; return the epoch it began in."""
        path = self.folder / name / "started"

        def has_started() -> bool:
            self.check_alive()
            return path.exists() and path.read_text() != ""

        wait_until(f"{name} to start", has_started)
        return int(path.read_text())

    def thumbprint(self, name: str) -> str:
        return swarm_key_load_or_create(self._home(name) / "swarm.key").thumbprint

    def truth(self, *names: str) -> dict[int, dict[str, int]]:
        """Return what entered the averages by the trainers' own account, like the ledger."""
        found: dict[int, dict[str, int]] = {}
        for name in names:
            key = self.thumbprint(name)
            path = self.folder / name / "truth.jsonl"
            for line in path.read_text().splitlines() if path.exists() else []:
                epoch, samples = json.loads(line)
                found.setdefault(epoch, {})[key] = samples
        return found

    def check_alive(self) -> None:
        """Fail with the last lines of a process that ended by itself."""
        for name, process in self.running.items():
            if process.poll() is not None:
                output = (self.folder / name / "output.log").read_text()
                raise AssertionError(f"{name} ended with {process.returncode}: {output[-800:]}")

    def kill(self, name: str) -> None:
        """Kill -9 of the leader alone, as the system's memory killer would do.

        Returns when its children have followed: until then they would answer at its port.
        """
        process = self.running.pop(name)
        process.kill()
        process.wait(10)
        wait_until(f"no orphan of {name}", lambda: session_members(process.pid) == [], seconds=10)

    def stop(self, name: str, *, seconds: float = 30) -> int:
        process = self.running.pop(name)
        process.terminate()
        try:
            return process.wait(seconds)
        finally:
            end_session(process.pid)

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(10)
            end_session(process.pid)

    def _home(self, name: str) -> Path:
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.json").write_text(self.config.model_dump_json())
        return home

    def _start(self, name: str, module: str, *words: str) -> None:
        output = (self.folder / name / "output.log").open("ab")
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.running[name] = subprocess.Popen(
            [sys.executable, "-m", f"tests.swarm.{module}", *words],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        output.close()


def port_answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def session_members(leader: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def end_session(leader: int) -> None:
    for pid in session_members(leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
