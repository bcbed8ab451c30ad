"""Children that hivemind forks: they die with us, and they never write to the user's terminal.

hivemind forks a DHT process and two averagers and starts the ``p2pd`` daemon. When the main
process is killed they would live on and keep the port. On Linux each child therefore asks the
kernel to be killed when its parent goes. The parent is the *thread* that forked, so peers must
be started from a thread that lives as long as the process, such as the main thread.
"""

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hivemind.utils.logging import use_hivemind_log_handler

from training.swarm.leftovers import leftovers_clean

_PR_SET_PDEATHSIG = 1
_MAX_LOG_BYTES = 5_000_000
_guarded = False
_log_path: Path | None = None


def children_guard() -> None:
    """Make every child forked from now on die with this process (Linux; elsewhere a no-op).

    The first time, what earlier processes left behind is removed too.
    """
    global _guarded
    if not _guarded:
        leftovers_clean()
        os.register_at_fork(after_in_child=_prepare_child)
        _guarded = True


def swarm_log_to(path: Path) -> None:
    """Write what hivemind says to a file instead of the terminal, its children included."""
    global _log_path
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
        path.unlink()
    use_hivemind_log_handler("nowhere")
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    for name, level in (("hivemind", logging.INFO), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level)
    threading.excepthook = _log_thread_error
    _log_path = path


def swarm_log_quiet() -> None:
    """Silence hivemind: what it says while it shuts down is noise."""
    for name in ("hivemind", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def sigint_kept() -> Iterator[None]:
    """Keep Ctrl-C working: hivemind makes the process deaf to it when it starts an averager."""
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, handler)


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        logging.getLogger("hivemind").error("a thread ended: %r", args.exc_value)


def _prepare_child() -> None:
    # The parent's SIGTERM handler means "leave well"; a child must simply end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _die_with_parent()
    warnings.simplefilter("ignore")  # hivemind calls what others have deprecated
    original = asyncio.subprocess.create_subprocess_exec
    asyncio.subprocess.create_subprocess_exec = partial(original, preexec_fn=_die_with_parent)
    if _log_path is not None:
        log = os.open(_log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
