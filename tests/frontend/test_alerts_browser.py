"""Alerts, health, nodes and the admin in a real browser: on a phone and a laptop, both themes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories import node_make
from tests.factories_alerts import alert_make
from tests.factories_runs import run_make, snapshot_take, swarm_make
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
from web.accounts.models import User
from web.alerts.kinds import AlertKind
from web.core.slowqueries import SLOW_LOG

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]
DESK = "/control/runs/demo/"
LOOK = os.environ.get("BEEYARD_LOOK", "")
"""A folder that keeps the pictures."""


@pytest.fixture
def address(
    transactional_db: None, live_server: LiveServer, settings: Any, tmp_path: Path, alice: User
) -> Iterator[str]:
    settings.KEYS_DIR = tmp_path / "keys"
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    run = run_make(alice)
    snapshot_take(swarm_make(run, 2))
    alert_make(run, evidence={"epoch_age_s": 1200})
    alert_make(run, AlertKind.LOSS_SPIKE, severity="warning", sentence="The loss is 9.1, not 2.4.")
    alert_make(None, AlertKind.DISK_FILLING, severity="warning", sentence="The disk is 91 % full.")
    node_make("annex", devices=[{"device": "cuda:0", "name": "A very large accelerator, 141 GB"}])
    SLOW_LOG.note("SELECT * FROM runs_run WHERE slug = 'demo' ORDER BY id " + "x" * 200, 1.5)
    yield str(live_server.url)
    SLOW_LOG.clear()


@pytest.fixture
def cookie(address: str, alice: User) -> str:
    client = Client()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value  # type: ignore[return-value]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_an_alert_is_acknowledged_and_every_page_around_it_fits(
    width: int, scheme: str, browser: Any, address: str, cookie: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 768 if width > 400 else 844}
    page, said = visit(browser, address, cookie, viewport=viewport, color_scheme=scheme)
    folder, too_wide = Path(LOOK or tmp_path), []

    def look(name: str, path: str = "") -> None:
        if path:
            assert page.goto(f"{address}{path}").status == 200, path
        page.wait_for_timeout(150)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)

    look("alerts", "/control/alerts/")
    look("alerts-run", f"{DESK}alerts/")
    look("alert-settings", f"{DESK}alerts/settings/")
    look("health", "/control/health/")
    look("nodes", "/control/nodes/")
    look("admin", "/admin/")
    look("admin-alerts", "/admin/alerts/alert/")
    page.goto(f"{address}/control/alerts/")
    page.get_by_role("link", name="No epoch", exact=True).first.click()
    look("alert")
    page.fill("[name=acknowledge-reason]", "restarting the coordinator")
    page.press("[name=acknowledge-reason]", "Enter")
    page.get_by_text("acknowledged.").first.wait_for(timeout=8000)
    look("alert-acknowledged")
    assert too_wide == []
    assert said == []
