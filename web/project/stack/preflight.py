"""Checks before anything is started or changed; each failure is one sentence."""

import errno
import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIN_FREE_BYTES = 1 << 30


class PreflightError(Exception):
    """The site cannot start here; the text says why and what to do."""


def machine_check(data: Path) -> None:
    """Check Python, folder and disk.

    Raises:
        PreflightError: with one clear sentence.
    """
    python_check()
    folder_check(data)
    disk_check(data)


def python_check(version: tuple[int, int] = sys.version_info[:2]) -> None:
    if not (3, 11) <= version < (3, 14):
        raise PreflightError(
            f"Python {version[0]}.{version[1]} does not fit: install Python 3.11, 3.12 or 3.13."
        )


def folder_check(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = data / f".probe-{os.getpid()}"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise PreflightError(f"The disk of {data} is full: free some space.") from error
        raise PreflightError(
            f"The data folder {data} cannot be written ({error.strerror}): choose another with "
            "--data, or give this account the right to write there."
        ) from error


def disk_check(data: Path) -> None:
    free = shutil.disk_usage(data).free
    if free < MIN_FREE_BYTES:
        raise PreflightError(
            f"Only {free >> 20} MiB are free at {data}: {MIN_FREE_BYTES >> 20} MiB are needed for "
            "checkpoints and logs; free some space or choose another folder with --data."
        )


def port_check(bind: str, port: int) -> None:
    if not 0 < port < 65536:
        raise PreflightError(f"{port} is no port: choose one from 1 to 65535 with --port.")
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except OSError as error:
            raise PreflightError(_port_sentence(error, bind, port)) from error


def _port_sentence(error: OSError, bind: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use by another program: stop it or choose another with --port."
    if error.errno == errno.EACCES:
        return f"This account may not listen on port {port}: choose one above 1023 with --port."
    return f"The site cannot listen on {bind} ({error.strerror or error}): choose another --bind."


@contextmanager
def folder_locked(data: Path) -> Iterator[None]:
    """Hold the data folder, so that two sites never share one.

    Raises:
        PreflightError: another site runs on it, named by its process.
    """
    path = data / "up.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise PreflightError(
                f"A site already runs on {data} (process {holder}): stop it with Ctrl-C there, or "
                "choose another folder with --data."
            ) from error
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
