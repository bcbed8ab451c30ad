"""Real peers on loopback: whatever a test leaves behind is ended after it."""

import gc
import os
from collections.abc import Iterator

import psutil
import pytest

_LIVES_ON = "torch_shm_manager"
"""One per process that shares tensors; it ends with that process."""


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    left = set(psutil.Process().children(recursive=True)) - before
    # Processes of a module's fixture have sessions of their own, and may start children meanwhile.
    kept = {process.pid for process in before}
    for process in left:
        try:
            if process.name() != _LIVES_ON and os.getsid(process.pid) not in kept:
                process.kill()
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    # hivemind leaves open event loops behind. Collecting them warns, and closing a handle that
    # closes already ends the whole process in libuv: whatever this test left is never collected.
    gc.freeze()
