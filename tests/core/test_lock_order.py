"""Rows first, the end of the audit chain last: nobody waits for a row with that lock in hand.

Who holds the chain's end and waits for a row meets, on PostgreSQL, somebody who holds that row and
waits for the chain's end: the database then ends one of them. SQLite has one lock for all and
would never show it, so the order of the statements is looked at.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import node_make
from tests.factories_alerts import alert_make
from tests.factories_runs import run_make
from web.accounts.models import User
from web.alerts.kinds import AlertKind, RuleValues
from web.alerts.models import Webhook, WebhookDelivery
from web.alerts.posting import Outcome
from web.alerts.services import (
    alert_acknowledge,
    alert_mail_set,
    alert_mute,
    alert_settings_change,
)
from web.alerts.webhooks import (
    FAILED_LIMIT,
    RETRY_SECONDS,
    delivery_attempt,
    webhook_create,
    webhook_delete,
    webhook_enable,
    webhook_test,
)
from web.runs.models import Run
from web.workers.models import ManagedWorker
from web.workers.nodes import node_limits_set
from web.workers.rekey import managed_worker_keys_replace
from web.workers.removal import managed_worker_remove, node_forget
from web.workers.room import Limits
from web.workers.services import (
    managed_worker_create,
    managed_worker_restart,
    managed_worker_start,
    managed_worker_stop,
)

pytestmark = pytest.mark.django_db
WRITE = re.compile(r'^(INSERT INTO|UPDATE|DELETE FROM) "(?P<table>\w+)"')
NOW = timezone.now()


def written(act: Callable[[], object]) -> list[str]:
    """Return the tables that an act writes, in order."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        act()
    found = [WRITE.match(query["sql"]) for query in queries]
    return [match["table"] for match in found if match]


@pytest.fixture
def run(alice: User, settings: Any, tmp_path: Any) -> Run:
    settings.KEYS_DIR, settings.WORKERS_DIR = tmp_path, tmp_path
    return run_make(alice)


@pytest.fixture
def webhook(run: Run) -> Webhook:
    return webhook_create(run.organiser, run, "https://example.org/hook")[0]


@pytest.fixture
def worker(run: Run) -> ManagedWorker:
    return managed_worker_create(run.organiser, run, "trainer", "trainer-1")


def fail_for_good(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.alerts.webhooks._post", lambda _: Outcome(False, "broken"))
    Webhook.objects.update(num_failed=FAILED_LIMIT - 1)
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event="alert.opened", body={}, created_at=NOW, next_at=NOW,
        num_attempts=len(RETRY_SECONDS),
    )  # fmt: skip
    delivery_attempt(delivery.pk, NOW)


def test_alerts_and_webhooks(
    run: Run, webhook: Webhook, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = alert_make(run)
    rules = {AlertKind.NO_EPOCH: RuleValues(True, 2.0, 60, 60)}
    acts: list[Callable[[], object]] = [
        lambda: webhook_test(alice, webhook),
        lambda: fail_for_good(webhook, monkeypatch),
        lambda: webhook_enable(alice, webhook),
        lambda: webhook_delete(alice, webhook),
        lambda: webhook_create(alice, run, "https://example.org/"),
        lambda: alert_acknowledge(alice, alert, "mine"),
        lambda: alert_mute(alice, alert, NOW + timedelta(hours=1), "night"),
        lambda: alert_settings_change(alice, run, rules),
        lambda: alert_mail_set(alice, run, is_wanted=False),
    ]
    for number, act in enumerate(acts):
        check(number, written(act))


def test_managed_workers_and_nodes(run: Run, worker: ManagedWorker, alice: User) -> None:
    node = node_make("annex")
    away = NOW + timedelta(hours=1)
    acts: list[Callable[[], object]] = [
        lambda: managed_worker_stop(alice, worker),
        lambda: managed_worker_start(alice, worker),
        lambda: managed_worker_restart(alice, worker),
        lambda: managed_worker_keys_replace(alice, worker),
        lambda: managed_worker_create(alice, run, "trainer", "trainer-2"),
        lambda: managed_worker_stop(alice, worker),
        lambda: managed_worker_remove(alice, worker),
        lambda: node_limits_set(alice, node, Limits(3)),
        lambda: node_forget(alice, node, away),
    ]
    for number, act in enumerate(acts):
        check(number, written(act))


def check(number: int, tables: list[str]) -> None:
    first = tables.index("core_auditentry")
    assert tables[:first], f"act {number} wrote nothing before its audit row"
    assert set(tables[first:]) <= {"core_auditentry", "core_audithead"}, (number, tables)
