"""Private files: owner-only, and never seen half written."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from training.client.errors import store_error


def folder_make(path: Path) -> Path:
    """Make a folder of mode 0700 with its parents; an existing one keeps its mode."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise store_error(
            f"the folder {path} cannot be made: {error.strerror}",
            "Choose a folder that you may write to with --home.",
        ) from error
    return path


def file_write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file in one step, so that readers and crashes see the old or the new one."""
    folder_make(path.parent)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise store_error(
            f"{path} cannot be written: {error.strerror}",
            "Free some disk space or check who owns the folder, then try again.",
        ) from error


def json_write(path: Path, value: Any) -> None:
    """Replace a JSON file in one step."""
    file_write(path, json.dumps(value, indent=1).encode())


def json_read(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None when there is no such file.

    Raises:
        ClientError: the file is there but is not a JSON object.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise file_broken(path, str(error)) from error
    if not isinstance(value, dict):
        raise file_broken(path, "not a JSON object")
    return value


def file_broken(path: Path, why: str) -> Exception:
    """Return the error for a file whose content cannot be used."""
    return store_error(
        f"{path} is damaged ({why})",
        f"Delete {path}; it is made anew when it is needed.",
    )
