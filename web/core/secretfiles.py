"""Files that only this account may read, written whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def secret_file_keep(path: Path, make: Callable[[], str]) -> None:
    """Write what ``make`` returns unless the file exists; the first of several processes wins."""
    if path.exists():
        return
    part = _part_write(path, make())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink()


def secret_file_write(path: Path, text: str) -> None:
    """Replace the file."""
    _part_write(path, text).replace(path)


def _part_write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return part
