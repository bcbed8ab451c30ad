"""Health says what is alive, what is not, and since when."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.api import health
from web.contributions.checking import totals_check
from web.contributions.models import ContributionTotal
from web.core.pulse import PULSE_CELERY, pulse_age, pulse_write
from web.core.tasks import pulse_task
from web.monitoring.models import RunSwarm
from web.runs.models import Run

pytestmark = pytest.mark.django_db


def ready(client: Client) -> tuple[int, dict[str, Any]]:
    response = client.get("/readyz")
    return response.status_code, response.json()


@pytest.fixture
def run(alice: User) -> Run:
    swarm = swarm_make(run_make(alice), 1)
    snapshot_take(swarm, timezone.now())
    return swarm.run


def test_the_site_is_ready_when_everything_shows_life(client: Client, run: Run) -> None:
    pulse_task()
    status, body = ready(client)
    assert (status, body["status"]) == (200, "ok")
    assert set(body["checks"]) == {"database", "redis", "celery"}
    assert body["coordinators"]["demo"]["ok"]
    assert body["coordinators"]["demo"]["age"] < 30
    assert body["ledger"] is None, "no night has passed"


def test_wrong_totals_are_told_and_do_not_take_the_site_out(client: Client, run: Run) -> None:
    pulse_task()
    now = timezone.now()
    assert totals_check(now).num_differences == 0
    assert ready(client)[1]["ledger"]["ok"]
    assert "beeyard_ledger_differences 0.0" in client.get("/metrics").text
    ContributionTotal.objects.create(run=run, user=run.organiser, samples=5)
    totals_check(now)
    status, body = ready(client)
    assert status == 200
    assert {k: body["ledger"][k] for k in ("ok", "differences")} == {"ok": False, "differences": 1}
    assert "beeyard_ledger_differences 1.0" in client.get("/metrics").text


def test_without_a_celery_worker_the_site_is_not_ready(client: Client) -> None:
    status, body = ready(client)
    assert (status, body["status"]) == (503, "unavailable")
    assert body["checks"]["celery"] == {"ok": False, "age": None}


def test_a_silent_coordinator_is_named_with_its_age(client: Client, run: Run) -> None:
    pulse_write(PULSE_CELERY)
    RunSwarm.objects.update(received_at=timezone.now() - timedelta(minutes=5))
    status, body = ready(client)
    assert status == 503
    assert not body["coordinators"]["demo"]["ok"]
    assert 299 < body["coordinators"]["demo"]["age"] < 330


def test_runs_that_do_not_train_need_no_coordinator(client: Client, run: Run) -> None:
    pulse_write(PULSE_CELERY)
    RunSwarm.objects.all().delete()
    Run.objects.update(state="finished")
    assert ready(client)[0] == 200


def test_the_name_of_a_private_run_is_not_told(client: Client, run: Run) -> None:
    Run.objects.update(is_public=False)
    assert list(ready(client)[1]["coordinators"]) == [f"private-{run.pk}"]
    assert "demo" not in client.get("/metrics").content.decode()


@pytest.mark.parametrize(
    ("name", "error"), [("redis", RedisConnectionError("away")), ("database", DatabaseError("x"))]
)
def test_what_is_away_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr(health, f"_{name}", broken)
    status, body = ready(client)
    assert status == 503
    assert not body["checks"][name]["ok"]


def test_the_process_says_that_it_lives(client: Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"


def test_a_pulse_has_an_age() -> None:
    assert pulse_age("nobody") is None
    pulse_write("somebody")
    age = pulse_age("somebody")
    assert age is not None
    assert 0 <= age < 5


def test_figures_are_of_runs_and_tell_no_names(client: Client, run: Run, bob: User) -> None:
    text = client.get("/metrics").content.decode()
    assert 'beeyard_run_num_peers{run="demo"} 1.0' in text
    assert 'beeyard_run_epoch{run="demo"}' in text
    assert "beeyard_run_snapshot_age_seconds" in text
    assert "process_resident_memory_bytes" in text
    assert "bob" not in text
    assert "alice" not in text


@pytest.mark.redis
def test_readiness_asks_a_real_redis(client: Client, settings: Any, redis_server: str) -> None:
    settings.LIVE_BACKEND, settings.REDIS_URL = "redis", redis_server
    assert ready(client)[1]["checks"]["redis"]["ok"]
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert not ready(client)[1]["checks"]["redis"]["ok"]
