"""supervisord with small programs: restarted when killed, stopped in order."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from web.project.stack.supervise import Program, Supervisor
from web.workers.processes import wait_until

SCRIPT = """
import os, pathlib, signal, sys, time
name, log = sys.argv[1], pathlib.Path(sys.argv[2])
def say(word):
    with log.open("a") as file:
        file.write(f"{word} {name}\\n")
def leave(*_):
    say("stop")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
say("start")
pathlib.Path(sys.argv[2] + "." + name).write_text(f"{os.getpid()} {os.environ['BEEYARD_PROCESS']}")
time.sleep(60)
"""


@pytest.fixture(params=["short", "a-long-name-" * 9], ids=["short path", "long path"])
def supervisor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    run, logs = tmp_path / str(request.param), tmp_path / "logs"
    run.mkdir()
    logs.mkdir()
    made = Supervisor(run=run, logs=logs, directory=tmp_path)
    yield made
    made.stop()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def pid_of(log: Path, name: str) -> int | None:
    file = log.with_name(f"{log.name}.{name}")
    return int(file.read_text().split()[0]) if file.exists() and file.read_text() else None


def test_programs_start_and_stop_in_order_and_a_killed_one_comes_back(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    script, log = tmp_path / "program with a 100% strange name.py", tmp_path / "log"
    script.write_text(SCRIPT)
    programs = [
        Program(name, [sys.executable, str(script), name, str(log)], priority)
        for name, priority in (("first", 10), ("second", 20))
    ]
    supervisor.start(programs, os.environ)
    assert wait_until(lambda: pid_of(log, "first") and pid_of(log, "second"), 30)
    assert log.with_name("log.first").read_text().endswith(" first"), "it bears its mark"

    old = pid_of(log, "second")
    psutil.Process(old).kill()
    assert wait_until(lambda: pid_of(log, "second") not in (None, old), 30)

    supervisor.program_stop("second")
    assert lines(log)[-1] == "stop second"
    supervisor.program_stop("second")  # stopped already: nothing to do
    assert supervisor.is_running()
    supervisor.stop()
    assert lines(log)[-1] == "stop first"
    assert not supervisor.is_running()
