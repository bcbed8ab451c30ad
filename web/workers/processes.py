"""Processes of this installation: alive or not, and how they are ended with all they started.

A process is known by its pid and its start time together, because pids are used again. What it
started in turn (forks, p2pd, helpers with sessions of their own) is known by the mark that all
of them inherit in their environment: neither parent nor session nor group survives a kill -9.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

import psutil
from django.conf import settings

from training.protocol.names import ENV_DATA, ENV_PROCESS

TERM_SECONDS = 15.0
KILL_SECONDS = 5.0
_START_SLACK_SECONDS = 1.0
_POLL_SECONDS = 0.1


def process_started_at(pid: int) -> float | None:
    """Return when a process was born (seconds since the epoch), None when it is gone."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_alive(pid: int | None, started_at: float | None) -> bool:
    """Return whether exactly this process runs; a pid that was given away again is not it."""
    if pid is None or started_at is None:
        return False
    try:
        process = psutil.Process(pid)
        is_same = abs(process.create_time() - started_at) <= _START_SLACK_SECONDS
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def marked_processes(name: str = "") -> list[psutil.Process]:
    """Return the live processes that bear this installation's mark.

    Args:
        name: only those of this program or managed worker; empty: all.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            environment = process.environ()
            mark = environment.get(ENV_PROCESS, "")
            is_ours = bool(mark) and environment.get(ENV_DATA) == str(settings.DATA_DIR)
            is_meant = mark == name if name else process.pid != os.getpid()
            if is_ours and is_meant and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def marks_present() -> set[str]:
    """Return the marks of all live processes of this installation."""
    found = set()
    for process in marked_processes():
        with contextlib.suppress(OSError, psutil.Error):
            found.add(process.environ().get(ENV_PROCESS, ""))
    return found


def memory_mb_of(name: str) -> float:
    """Return the MiB of memory that all processes with a mark take; shared parts count once."""
    total = 0
    for process in marked_processes(name):
        with contextlib.suppress(OSError, psutil.Error):
            info = process.memory_full_info()
            total += getattr(info, "pss", info.uss)
    return total / (1 << 20)


def marked_leader(name: str) -> psutil.Process | None:
    """Return the process that a launch made, the oldest of its kind; None when there is none."""
    leaders = [p for p in marked_processes(name) if p.pid == os.getsid(p.pid) and _is_training(p)]
    return min(leaders, key=lambda process: process.create_time(), default=None)


def terminate(pid: int | None, started_at: float | None) -> None:
    """Ask a process to leave. Only the process itself: its helpers end with it."""
    if pid is not None and is_alive(pid, started_at):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def remains_kill(name: str) -> int:
    """Kill all that bears a mark and wait until it is gone; returns how many there were."""
    killed = 0
    for _ in range(3):  # what a dying process forked in between
        remains = marked_processes(name)
        if not remains:
            break
        killed += processes_kill(remains)
        wait_until(lambda: not marked_processes(name), KILL_SECONDS)
    return killed


def processes_kill(processes: Iterable[psutil.Process]) -> int:
    """Kill processes; returns how many there were."""
    count = 0
    for process in processes:
        count += 1
        with contextlib.suppress(psutil.Error):
            process.kill()
    return count


def wait_until(check: Callable[[], bool], seconds: float) -> bool:
    """Poll until ``check`` holds; returns whether it did within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _is_training(process: psutil.Process) -> bool:
    return "training" in process.cmdline()
