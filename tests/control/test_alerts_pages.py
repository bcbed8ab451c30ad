"""Alerts and health at the desk, and the admin and figures beside them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone

from tests.factories import node_make, user_make
from tests.factories_alerts import alert_make
from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.alerts.kinds import AlertKind
from web.alerts.models import AlertMail, Webhook
from web.alerts.selectors import values_of
from web.alerts.services import alert_acknowledge
from web.core.admin import ReadOnlyAdmin
from web.core.models import AuditEntry
from web.core.redis import redis_client
from web.core.services_health import QUEUES, redis_look
from web.core.slowqueries import MAX_SHAPES, SLOW_LOG, SlowLog, shape_of
from web.project import celery
from web.runs.models import Run
from web.runs.services import run_member_add

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def test_an_alert_is_seen_acknowledged_and_muted(desk: Client, run: Run) -> None:
    alert = alert_make(run, evidence={"epoch_age_s": 1200})
    page = desk.get("/control/").text
    assert re.search(r'class="count">1<span class="visually-hidden"> nobody', page)
    for address in ("/control/alerts/", "/control/runs/demo/alerts/", "/control/runs/demo/"):
        assert "No epoch was finished for 20 min." in desk.get(address).text, address
    own = f"/control/alerts/{alert.public_id}/"
    assert "Epoch age s" in desk.get(own).text
    answer = desk.post(f"{own}acknowledge/", {"acknowledge-reason": "restarting"}, follow=True)
    assert "No epoch: acknowledged." in answer.text
    assert "restarting" in answer.text
    assert "nobody has acknowledged" not in desk.get("/control/").text
    answer = desk.post(f"{own}mute/", {"mute-hours": "8", "mute-reason": "night"}, follow=True)
    assert "Muted until" in answer.text
    answer = desk.post(f"{own}mute/", {"mute-hours": "9", "mute-reason": ""}, follow=True)
    assert answer.status_code == 422
    assert "This field is required" in answer.text


def test_what_was_typed_about_an_alert_is_not_lost_when_it_is_refused(
    desk: Client, run: Run, alice: User
) -> None:
    alert = alert_make(run)
    own = f"/control/alerts/{alert.public_id}/"
    answer = desk.post(f"{own}mute/", {"mute-hours": "9", "mute-reason": "a storm tonight"})
    assert answer.status_code == 422
    assert 'value="a storm tonight"' in answer.text
    assert "Select a valid choice" in answer.text
    long = "restarting " * 30
    answer = desk.post(f"{own}acknowledge/", {"acknowledge-reason": long})
    assert answer.status_code == 422
    assert long.strip() in answer.text
    alert_acknowledge(alice, alert, "somebody was faster")
    answer = desk.post(f"{own}acknowledge/", {"acknowledge-reason": "mine"})
    assert answer.status_code == 422
    assert "acknowledged or closed already" in answer.text
    viewer = user_make("erin")
    run_member_add(alice, run, viewer, "viewer")
    desk.force_login(viewer)
    for act in ("acknowledge", "mute"):
        assert desk.post(f"{own}{act}/", {}).status_code == 403, "nor is a form offered to them"


def test_alerts_of_others_are_not_seen(client: Client, run: Run, bob: User) -> None:
    alert = alert_make(run)
    site = alert_make(None, AlertKind.DISK_FILLING)
    own = run_make(user_make("dora", is_staff=True), "dora")
    User.objects.filter(username="dora").update(is_staff=False)
    client.force_login(User.objects.get(username="dora"))
    assert own.title not in client.get("/control/alerts/").text
    assert "No epoch" not in client.get("/control/alerts/").text
    for other in (alert, site):
        for act in ("", "acknowledge/", "mute/"):
            answer = client.generic(
                "POST" if act else "GET", f"/control/alerts/{other.public_id}/{act}"
            )
            assert answer.status_code == 403, (other, act)


def test_rules_mail_and_webhooks_are_set_at_the_desk(
    desk: Client, run: Run, settings: Any, tmp_path: Path
) -> None:
    settings.KEYS_DIR = tmp_path
    page = "/control/runs/demo/alerts/settings/"
    form = desk.get(page).context["rules"]
    data = {name: field.initial for name, field in form.fields.items() if field.initial}
    data |= {"no_epoch-limit": "30"}
    data.pop("loss_spike-is_on")
    data = {name: data.get(name, 0) for name in form.fields if name != "loss_spike-is_on"}
    assert "The rules hold" in desk.post(page, data, follow=True).text
    values = values_of(run)
    assert values[AlertKind.NO_EPOCH].limit == 30
    assert not values[AlertKind.LOSS_SPIKE].is_on
    assert "greater than or equal to" in desk.post(page, data | {"no_epoch-limit": "0"}).text
    for wanted in ("0", "1"):
        desk.post("/control/runs/demo/alerts/mail/", {"is_wanted": wanted})
        assert AlertMail.objects.filter(run=run).count() == int(wanted)
    AlertMail.objects.all().delete()
    User.objects.update(email="")
    for address in ("/control/runs/demo/alerts/mail/", "/control/alerts/mail/"):
        told = desk.post(address, {"is_wanted": "1"}, follow=True).text
        assert "has no e-mail address" in told or "Only the site" in told
    assert not AlertMail.objects.exists()
    answer = desk.post("/control/runs/demo/webhooks/", {"url": "http://127.0.0.1/"})
    assert "private networks are not called" in answer.text
    answer = desk.post("/control/runs/demo/webhooks/", {"url": "https://example.org/hook"})
    assert (answer.status_code, answer["Location"]) == (302, page), "a reload adds no second one"
    session = str(dict(desk.session.items()))
    assert "whsec_" not in session, "sessions are rows of the database"
    assert "whsec_" not in desk.head(page).text
    answer = desk.get(page)
    assert "whsec_" in answer.text
    assert answer["Cache-Control"] == "no-store"
    assert "whsec_" not in desk.get(page).text
    assert not [key for key in dict(desk.session.items()) if "webhook" in key]
    webhook = Webhook.objects.get()
    desk.post(f"/control/runs/demo/webhooks/{webhook.public_id}/delete/")
    assert not Webhook.objects.exists()


def test_the_list_of_alerts_costs_as_many_queries_for_many_as_for_one(
    desk: Client, run: Run, alice: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        alert_make(run_make(alice, f"run-{number}"))
        alert_make(run, state="closed", closed_at=timezone.now())
    with django_assert_max_num_queries(15):
        assert desk.get("/control/alerts/").status_code == 200


def test_the_health_page_shows_everything_with_its_age(desk: Client, run: Run) -> None:
    snapshot_take(swarm_make(run, 1))
    SLOW_LOG.clear()
    SLOW_LOG.note("SELECT * FROM people WHERE name = 'bob' AND id IN (%s, %s, %s)", 1.5)
    page = desk.get("/control/health/").text
    for text in (
        "Django",
        connection.display_name,
        "Coordinator of The demo run",
        "launch",
        "1.50 s",
    ):
        assert text in page, text
    assert "name = ? AND id IN (…)" in page
    assert "bob" not in page
    SLOW_LOG.clear()


def test_slow_statements_are_counted_by_shape_and_bounded() -> None:
    log = SlowLog()
    for number in range(MAX_SHAPES * 3):
        log.note(f"DROP c{'x' * number}", 1.0 + number)
        log.note("SELECT 1 WHERE a = 'it''s' AND b = 42", 9000.0)
    assert len(log.worst(1000)) == MAX_SHAPES
    assert (log.worst(1)[0].count, log.worst(1)[0].worst_seconds) == (MAX_SHAPES * 3, 9000.0)
    assert shape_of("INSERT INTO t VALUES (%s, %s), (%s, %s)") == "INSERT INTO t VALUES (…)"
    assert shape_of("SELECT 1 WHERE a = 'it''s' AND b = 42") == "SELECT ? WHERE a = ? AND b = ?"


def test_statements_over_the_limit_are_noted(desk: Client, run: Run, settings: Any) -> None:
    SLOW_LOG.clear()
    desk.get("/control/")
    assert SLOW_LOG.worst() == []
    settings.SLOW_QUERY_MS = 0
    desk.get("/control/")
    assert any("runs_run" in row.sql for row in SLOW_LOG.worst(100))
    SLOW_LOG.clear()


def test_the_queues_that_are_counted_are_those_of_celery() -> None:
    assert QUEUES == celery.QUEUES


def metric_names(client: Client) -> set[str]:
    return set(re.findall(r"^(\w+?)(?:\{| )", client.get("/metrics").text, re.MULTILINE))


def test_every_query_of_the_dashboard_names_a_metric_that_exists(client: Client, run: Run) -> None:
    from web.contributions.checking import totals_check
    from web.core.tasks import pulse_task
    from web.runs.models import Checkpoint

    now = timezone.now()
    Checkpoint.objects.create(
        run=run, lineage=1, epoch=0, config_version=1, files=[], manifest="", saved_at=now
    )
    snapshot_take(swarm_make(run, 1))
    alert_make(run)
    totals_check(now)
    pulse_task()
    client.get("/")
    known = metric_names(client)
    board = json.loads((ROOT / "docs" / "grafana" / "beeyard.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    texts += [row["query"] for row in board["templating"]["list"]]
    used = {name for text in texts for name in re.findall(r"\b(?:beeyard|process)_\w+", text)}
    assert len(used) > 15
    assert not used - known
    ours = {name for name in known if name.startswith("beeyard_")}
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    ends = re.compile(r"_(?:bucket|count|sum|created)$")
    assert not {name for name in ours if f"`{ends.sub('', name)}`" not in page}


def test_figures_tell_no_private_run(client: Client, run: Run) -> None:
    alert_make(run)
    Run.objects.update(is_public=False)
    assert "demo" not in client.get("/metrics").text


def ours() -> list[Any]:
    configs = (c for c in apps.get_app_configs() if c.name.startswith("web."))
    return [model for config in configs for model in config.get_models()]


def test_every_model_is_in_the_admin_and_only_accounts_can_be_changed() -> None:
    root = user_make("rooty", is_staff=True, is_superuser=True)
    request = RequestFactory().get("/admin/")
    request.user = root
    missing = [model.__name__ for model in ours() if model not in admin.site._registry]
    assert missing == []
    for model in set(ours()) - {User}:
        row = admin.site._registry[model]
        assert isinstance(row, ReadOnlyAdmin), model
        assert not row.has_add_permission(request)
        assert not row.has_change_permission(request)
        assert not row.has_delete_permission(request)


def test_the_admin_is_themed_and_needs_nothing_inline(client: Client, run: Run) -> None:
    client.force_login(user_make("rooty", is_staff=True, is_superuser=True))
    for page in ("", "runs/run/", f"runs/run/{run.pk}/change/", "accounts/user/"):
        response = client.get(f"/admin/{page}")
        assert response.status_code == 200, page
        assert "css/admin.css" in response.text
        assert "style-src 'self'" in response["Content-Security-Policy"]
        assert not re.search(
            r"\sstyle=|<style|\son\w+=|<script(?![^>]*\bsrc=)(?!.*json)", response.text
        )


def test_no_secret_is_shown_in_the_admin(
    client: Client, run: Run, settings: Any, tmp_path: Path
) -> None:
    from web.alerts.webhooks import webhook_create

    settings.KEYS_DIR = tmp_path
    webhook, _ = webhook_create(run.organiser, run, "https://example.org/hook")
    client.force_login(user_make("rooty", is_staff=True, is_superuser=True))
    page = client.get(f"/admin/alerts/webhook/{webhook.pk}/change/")
    assert page.status_code == 200
    assert webhook.secret not in page.text
    assert "example.org/hook" not in page.text, "whoever knows the address may write there"


def test_a_webhooks_address_is_shown_to_organisers_only(
    client: Client, desk: Client, run: Run, bob: User, settings: Any, tmp_path: Path
) -> None:
    settings.KEYS_DIR = tmp_path
    page = "/control/runs/demo/alerts/settings/"
    desk.post("/control/runs/demo/webhooks/", {"url": "https://hooks.example.org/T1/secret"})
    webhook = Webhook.objects.get()
    desk.post(f"/control/runs/demo/webhooks/{webhook.public_id}/test/")
    assert "hooks.example.org/T1/secret" in desk.get(page).text
    run_member_add(run.organiser, run, bob, "viewer")
    client.force_login(bob)
    seen = client.get(page).text
    assert "hooks.example.org/…" in seen
    assert "T1/secret" not in seen
    codes = AuditEntry.objects.filter(code__startswith="webhook.").values_list("code", "run")
    assert set(codes) == {("webhook.created", "demo"), ("webhook.tested", "demo")}


@pytest.mark.redis
def test_jobs_that_wait_are_counted_in_a_real_redis(
    desk: Client, settings: Any, redis_server: str
) -> None:
    settings.LIVE_BACKEND, settings.REDIS_URL = "redis", redis_server
    node_make("annex")
    redis_client().rpush("mail", "a", "b")
    redis_client().rpush("node.annex", "c")
    try:
        figures = Client().get("/metrics").text
        health = desk.get("/control/health/").text
    finally:
        redis_client().delete("mail", "node.annex")
    assert 'beeyard_queue_length{queue="mail"} 2.0' in figures
    assert 'beeyard_queue_length{queue="nodes"} 1.0' in figures
    assert "annex" not in figures, "what nodes are called is for the site's staff"
    assert re.search(r"node\.annex</th><td[^>]*>1<", health)
    look = redis_look()
    assert look.version
    assert look.size_bytes
    assert look.milliseconds is not None
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert "beeyard_queue_length{" not in Client().get("/metrics").text
    assert redis_look().milliseconds is None
