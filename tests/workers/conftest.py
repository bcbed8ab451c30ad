"""A managed worker whose program is a small script: the launching, not the training, is tested."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.factories_runs import run_make
from web.accounts.models import User
from web.workers.launcher import children_reap
from web.workers.models import ManagedWorker
from web.workers.processes import marked_processes, processes_kill, wait_until
from web.workers.services import managed_worker_create

HEAD = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, time
home = pathlib.Path(sys.argv[sys.argv.index("--home") + 1])
home.mkdir(parents=True, exist_ok=True)
heard = home / "heard.json"
part = home / "heard.part"
part.write_text(json.dumps({{"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}}))
part.rename(heard)

def beat():
    folder = home / "runs" / "127.0.0.1_8000" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "status.json").write_text(json.dumps({{"pid": os.getpid(), "phase": "training"}}))

"""
OBEDIENT = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
beat()
time.sleep(60)
"""
STUBBORN = """
child = os.fork()
if child == 0:  # as hivemind's forks do, it ignores that its parent is gone
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    os._exit(0)
(home / "child").write_text(str(child))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
beat()
time.sleep(60)
"""
BROKEN = """
print("the reason why it broke")
sys.exit(3)
"""

Program = Callable[[str], None]


@pytest.fixture
def program(tmp_path: Path, settings: Settings) -> Iterator[Program]:
    """Choose the behaviour of the program that is launched; nothing of it survives the test."""
    settings.DATA_DIR = tmp_path
    settings.WORKERS_DIR = tmp_path / "workers"
    settings.CHECKPOINTS_DIR = tmp_path / "checkpoints"
    script = tmp_path / "program"
    settings.TRAINING_PYTHON = str(script)

    def write(behaviour: str) -> None:
        script.write_text(HEAD + textwrap.dedent(behaviour))
        script.chmod(0o700)

    write(OBEDIENT)
    yield write
    processes_kill(marked_processes())
    assert wait_until(lambda: children_reap() or not marked_processes(), 5)


@pytest.fixture
def coordinator(alice: User, program: Program, monkeypatch: pytest.MonkeyPatch) -> ManagedWorker:
    """A coordinator that is wanted and was not started yet."""
    run = run_make(alice)
    return managed_worker_create(alice, run, "coordinator", "coordinator")
