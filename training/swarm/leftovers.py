"""Files that killed processes left: shared memory of torch, sockets of hivemind's daemon.

Nobody else removes them, and shared memory is memory.
"""

import contextlib
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the system keeps it, on Linux
_SEGMENT = re.compile(r"torch_(\d+)_")
_MIN_AGE_SECONDS = 60.0
"""Younger files may belong to a process that is just starting."""


def leftovers_clean(
    *, shared_memory: Path = _SHARED_MEMORY, sockets: Path | None = None, now: float | None = None
) -> int:
    """Remove own files whose process is gone; return how many there were."""
    sockets = sockets or Path(tempfile.gettempdir())
    horizon = (time.time() if now is None else now) - _MIN_AGE_SECONDS
    segments = (p for p in _own(shared_memory, "torch_*", horizon) if _is_orphan(p.name))
    dead = (p for p in _own(sockets, "hivemind-*.sock", horizon) if not _is_answered(p))
    removed = 0
    for path in [*segments, *dead]:
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def _own(folder: Path, pattern: str, horizon: float) -> Iterator[Path]:
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if facts.st_uid == os.getuid() and facts.st_mtime < horizon:
                yield path


def _is_orphan(name: str) -> bool:
    found = _SEGMENT.match(name)
    return found is not None and not psutil.pid_exists(int(found[1]))


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # not known to be dead: leave it alone
    return True
