"""Typed readers of the environment. A secret may also come from the file named by NAME_FILE."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


def env_text(name: str, default: str = "") -> str:
    """Return a setting, or the content of the file that NAME_FILE names."""
    file = os.environ.get(f"{name}_FILE")
    if file:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {file}: {error}") from error
    return os.environ.get(name, default)


def env_bool(name: str, *, default: bool) -> bool:
    value = env_text(name, "1" if default else "0").lower()
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")


def env_int(name: str, default: int) -> int:
    value = env_text(name, str(default))
    try:
        return int(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from error


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env_text(name, default).split(",") if part.strip()]


def env_secret(name: str, keep_in: Path) -> str:
    """Return a secret; one that is not given is made once and kept in a file of mode 0600."""
    value = env_text(name)
    if value:
        return value
    try:
        if not keep_in.exists():
            keep_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = keep_in.with_suffix(f".{os.getpid()}.part")
            part.touch(mode=0o600)
            part.write_text(secrets.token_urlsafe(48))
            try:
                os.link(part, keep_in)  # the first of several starting processes wins
            except FileExistsError:
                pass
            finally:
                part.unlink()
        return keep_in.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"The data folder cannot be written: {error}") from error


def env_file_read(path: Path) -> Mapping[str, str]:
    """Return NAME=value lines of a ``.env`` file; a missing file is an empty one."""
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}
