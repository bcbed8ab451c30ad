"""A node that knows only Redis learns there where the site's database is."""

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.servers import port_free
from tests.workers.conftest import Program
from web.core.redis import redis_client
from web.project.stack.node import database_find
from web.project.stack.preflight import PreflightError
from web.workers.site_database import database_ask, database_tell
from web.workers.tasks import node_look_task

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def redis_here(settings: Settings, redis_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL, settings.LIVE_BACKEND = redis_server, "redis"
    settings.DATABASE_URL = "postgres://beeyard:secret@db.example/beeyard"
    monkeypatch.setenv("REDIS_URL", redis_server)
    monkeypatch.setenv("DATABASE_URL", "")
    redis_client().delete("nodes:database_url")


@pytest.mark.django_db
def test_the_sites_own_node_says_it_and_no_other(program: Program) -> None:
    node_look_task(is_home=False)
    assert database_ask() is None
    node_look_task(is_home=True)
    assert database_ask() == "postgres://beeyard:secret@db.example/beeyard"
    assert 0 < redis_client().ttl("nodes:database_url") <= 3600  # type: ignore[operator]


def test_a_node_without_it_takes_what_the_site_said() -> None:
    with pytest.raises(PreflightError, match=r"has not said.*start it first"):
        database_find()
    database_tell()
    assert database_find()
    assert os.environ["DATABASE_URL"] == "postgres://beeyard:secret@db.example/beeyard"
    assert not database_find(), "it has one now"


def test_a_file_of_another_machine_is_told_apart(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite3"
    settings.DATABASE_URL = f"sqlite:///{file}"
    database_tell()
    with pytest.raises(PreflightError, match="need PostgreSQL"):
        database_find()
    file.touch()
    assert database_find()


def test_a_redis_that_does_not_answer_is_said(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{port_free()}/0"
    with pytest.raises(PreflightError, match="REDIS_URL cannot be used"):
        database_find()
    monkeypatch.setenv("REDIS_URL", "")
    assert not database_find(), "that it is missing is said later"
