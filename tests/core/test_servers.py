"""The servers of the tests are real."""

import os
import subprocess
import sys

import pytest
import redis


@pytest.mark.redis
def test_the_redis_server_answers_and_asks_for_its_password(redis_server: str) -> None:
    client = redis.Redis.from_url(redis_server)
    assert client.set("a", "b")
    client.close()
    stranger = redis.Redis.from_url("redis://" + redis_server.split("@")[1])
    with pytest.raises(redis.AuthenticationError):
        stranger.ping()
    stranger.close()


@pytest.mark.postgres
def test_all_migrations_run_on_postgresql(postgres_url: str) -> None:
    result = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
