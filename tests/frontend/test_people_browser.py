"""Roles, queue, peers and audit log in a real browser: on a phone and a laptop, in both themes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from tests.control.scenes import harmed_run
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
from web.accounts.models import User
from web.contributions.quarantine import device_quarantine
from web.core.auditing import audit_check
from web.monitoring.services import peer_message_send, peer_pause
from web.runs.models import BootstrapPeer, RunMember
from web.runs.services import run_device_bar_add, run_member_add
from web.workers.models import ManagedWorker

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]
DESK = "/control/runs/demo/"
LONG = "somebody-with-a-name-of-30-chr"
LOOK = os.environ.get("BEEYARD_LOOK", "")
"""A folder that keeps the pictures."""


@pytest.fixture
def address(
    transactional_db: None, live_server: LiveServer, alice: User, bob: User, charlie: User
) -> str:
    charlie.username = LONG
    charlie.save()
    swarm = harmed_run(alice, [bob, charlie, bob])
    first, second, third = swarm.volunteers
    run_member_add(alice, swarm.run, bob, RunMember.Part.MODERATOR, reason="helps at night")
    where = f"/ip4/192.0.2.7/tcp/40123/p2p/{second.peer.peer_id}"
    BootstrapPeer.objects.create(run=swarm.run, lineage=1, address=where, seen_at=timezone.now())
    device_quarantine(alice, swarm.run, first.device, "odd losses since the update")
    run_device_bar_add(alice, swarm.run, third.device, "its GPU is broken")
    peer_pause(alice, second.peer, "its line is too thin for this round")
    peer_message_send(alice, second.peer, "Please update your driver, the old one makes NaN.")
    ManagedWorker.objects.create(
        run=swarm.run, kind="trainer", name="trainer-1", state="failed", last_error="out of memory"
    )
    audit_check(timezone.now())
    return str(live_server.url)


@pytest.fixture
def cookie(address: str, alice: User) -> Iterator[str]:
    client = Client()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value  # type: ignore[return-value]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_every_page_fits_and_says_no_error(
    width: int, scheme: str, browser: Any, address: str, cookie: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 768 if width > 400 else 844}
    page, said = visit(browser, address, cookie, viewport=viewport, color_scheme=scheme)
    folder, too_wide = Path(LOOK or tmp_path), []

    def look(name: str, path: str) -> None:
        if path:
            page.goto(f"{address}{path}")
        page.wait_for_timeout(150)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)

    look("queue", "/control/queue/")
    look("queue-empty", "/control/queue/?kind=approval")
    look("roles", f"{DESK}roles/")
    look("role-take", f"{DESK}roles/bob/take/")
    look("peers", f"{DESK}peers/")
    look("peers-none", f"{DESK}peers/?q=nothing")
    page.goto(f"{address}{DESK}peers/?q={LONG}")
    page.get_by_role("link", name="machine 1").click()
    look("peer", "")
    page.get_by_role("link", name="Shut out…").click()
    look("shut-out", "")
    page.get_by_role("link", name="machine 1").click()
    page.get_by_role("link", name="Write to…").click()
    look("message", "")
    page.get_by_label("Message").fill("And thank you for your samples.")
    page.get_by_role("button", name="Write to").click()
    page.get_by_text("And thank you for your samples.").first.wait_for(timeout=8000)
    look("audit", f"{DESK}audit/")
    look("audit-site", "/control/audit/?code=run.")
    look("desk", DESK)
    assert too_wide == []
    assert said == []
