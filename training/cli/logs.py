"""Log files of the beeyard home."""

from pathlib import Path

from training.client.files import folder_make

_LOG_BYTES = 4 << 20


def log_file_open(logs: Path, name: str) -> Path:
    """Return the log file ``name``; a large one is put aside first."""
    path = folder_make(logs) / f"{name}.log"
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".old.log"))
    return path
