"""Processes of this installation: alive or not, and how they are ended with all they started."""

import os
import signal
import time
from collections.abc import Callable, Iterable

import psutil
from django.conf import settings

from training.protocol.names import ENV_DATA, ENV_PROCESS

TERM_SECONDS = 15.0
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
        same = abs(process.create_time() - started_at) <= _START_SLACK_SECONDS
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def session_members(leader: int) -> list[psutil.Process]:
    """Return the processes of a session; forks stay in it even when their parent is gone."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (OSError, psutil.Error):
            continue
    return members


def marked_processes(prefix: str = "") -> list[psutil.Process]:
    """Return the processes that this installation started, by the marks in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            is_ours = environment.get(ENV_DATA) == str(settings.DATA_DIR)
            name = environment.get(ENV_PROCESS, "")
            if is_ours and name and name.startswith(prefix) and process.pid != os.getpid():
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


def terminate(pid: int | None, started_at: float | None) -> None:
    """Ask a session's leader to leave. Only the leader: its helpers end with it."""
    if pid is not None and is_alive(pid, started_at):
        _signal([pid], signal.SIGTERM)


def session_end(pid: int | None, started_at: float | None, wait_seconds: float) -> bool:
    """Wait for a leader that was asked to leave, then kill what remains of its session.

    Returns:
        Whether it left by itself.
    """
    left = wait_until(lambda: not is_alive(pid, started_at), wait_seconds)
    if pid is not None:
        _reap(pid)
        # The session id is the leader's pid: nobody else's while any member lives.
        members = session_members(pid)
        if left and members:
            wait_until(lambda: not session_members(pid), 2.0)
            members = session_members(pid)
        _signal([m.pid for m in members], signal.SIGKILL)
        wait_until(lambda: not session_members(pid), 5.0)
    return left


def processes_kill(processes: Iterable[psutil.Process]) -> int:
    """Kill processes; returns how many there were."""
    pids = [process.pid for process in processes]
    _signal(pids, signal.SIGKILL)
    return len(pids)


def wait_until(check: Callable[[], bool], seconds: float) -> bool:
    """Poll until ``check`` holds; returns whether it did within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _reap(pid: int) -> None:
    """Collect a child of this very process, or it stays as a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except (ChildProcessError, OSError):
        return
