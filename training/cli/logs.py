"""Log files of the beeyard home."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from training.client.files import folder_make

_LOG_BYTES = 4 << 20
_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_file_open(logs: Path, name: str) -> Path:
    """Return the log file ``name``; a large one is put aside first."""
    path = folder_make(logs) / f"{name}.log"
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".old.log"))
    return path


@contextmanager
def logging_to(path: Path, *, also_stdout: bool = False) -> Iterator[None]:
    """Send log lines and warnings to a file; nothing of them reaches the terminal otherwise."""
    handlers: list[logging.Handler] = [logging.FileHandler(path)]
    if also_stdout:
        handlers.append(logging.StreamHandler(sys.stdout))
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORM))
    root, ours = logging.getLogger(), logging.getLogger("training")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = handlers
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.INFO)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
        for handler in handlers:
            handler.close()
