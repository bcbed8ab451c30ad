"""The command line in this process, against the stand-in site."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client.conftest import identity as identity
from tests.client.stand_in_site import StandInSite
from training.cli import admit, main, seat
from training.client.files import file_write
from training.client.store import Home
from training.trainer.session import TrainerSession, TrainerStats, TrainerUI

BEGAN_ANEW = 99
"""Exit code in place of the fresh process that takes over."""
TrainerBody = Callable[[TrainerSession, TrainerUI], int]


@dataclass
class Ran:
    """A command that ended."""

    code: int
    out: str
    err: str

    def json_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Beeyard:
    """Bob's terminal. ``trainer`` stands for the training itself, which has its own tests."""

    home: Home
    capsys: pytest.CaptureFixture[str]
    trainer: TrainerBody = field(default=lambda session, ui: 0)
    sessions: list[TrainerSession] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)

    def __call__(self, *arguments: str) -> Ran:
        try:
            code = main([*arguments, "--home", str(self.home.root)])
        except SystemExit as end:
            code = int(end.code or 0)
        said = self.capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return Ran(code, said.out, said.err)

    def train(self, session: TrainerSession, *, ui: TrainerUI) -> int:
        self.sessions.append(session)
        return self.trainer(session, ui)


@pytest.fixture
def site() -> Iterator[StandInSite]:
    """A site whose swarm has an entrance that accepts connections."""
    with StandInSite() as running, socket.create_server(("127.0.0.1", 0)) as entrance:
        port = entrance.getsockname()[1]
        running.bootstrap_peers = [f"/ip4/127.0.0.1/tcp/{port}/p2p/QmCoordinator"]
        yield running


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text("good-token\n")
    return str(path)


@pytest.fixture
def beeyard(
    tmp_path: Path,
    identity: bytes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Beeyard:
    file_write(tmp_path / "home" / "swarm.key", identity, mode=0o400)
    terminal = Beeyard(Home(tmp_path / "home"), capsys)

    def restart(number: int) -> None:
        terminal.restarts.append(number)
        raise SystemExit(BEGAN_ANEW)

    module = ModuleType("training.trainer.run")
    module.trainer_run = terminal.train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "training.trainer.run", module)
    monkeypatch.setattr("training.cli.join.process_restart", restart)
    monkeypatch.setattr(seat, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(admit, "_ENTRANCE_WAITS", (0.01,))
    monkeypatch.setattr("training.cli.join._FIRST_WAIT", 0.01)
    for name in ("BEEYARD_TOKEN", "BEEYARD_HOME", "BEEYARD_RESTARTS"):
        monkeypatch.delenv(name, raising=False)
    return terminal


def stats_make(**changes: Any) -> TrainerStats:
    """A moment of training."""
    fields: dict[str, Any] = {
        "phase": "training",
        "epoch": 3,
        "num_peers": 2,
        "samples_epoch": 512,
        "target_batch_size": 1024,
        "samples_own": 256,
        "samples_total": 1280,
        "samples_per_second": 41.25,
        "loss": 5.125,
    }
    return TrainerStats(**(fields | changes))
