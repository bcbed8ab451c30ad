"""Somebody asks to join, an organiser approves: on a phone and a laptop, in both themes."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories_runs import peer_joined, run_make
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
from training.protocol.keys import key_generate
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]
LOOK = os.environ.get("BEEYARD_LOOK", "")
"""A folder that keeps the pictures."""
_TABLE_FITS = """(() => {
  const box = document.querySelector(".table-scroll");
  return box.scrollWidth <= box.clientWidth;
})()"""
_GAP = """document.querySelector(".columns").getBoundingClientRect().top
  - document.querySelector("#approval").getBoundingClientRect().bottom"""


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return str(client.cookies["sessionid"].value)


@pytest.fixture
def run(transactional_db: None, alice: User) -> Run:
    made = run_make(alice)
    Run.objects.filter(pk=made.pk).update(join_policy="approval")
    made.refresh_from_db()
    return made


@pytest.fixture
def cookie(run: Run, bob: User) -> str:
    return cookie_of(bob)


@pytest.fixture
def desk_cookie(run: Run, alice: User) -> str:
    return cookie_of(alice)


def join(run: Run, user: User) -> str:
    """Return how the person's machine is answered, from a thread that may use the database."""

    def ask() -> str:
        try:
            peer_joined(run, user, key_generate())
        except AppError as error:
            return error.detail
        finally:
            connection.close()
        return "joined"

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_bob_asks_alice_approves_and_bob_joins(
    width: int, scheme: str, cookie: str, desk_cookie: str, run: Run, bob: User,
    live_server: LiveServer, tmp_path: Path, browser: Any,
) -> None:  # fmt: skip
    address, too_wide = str(live_server.url), []
    options = {
        "viewport": {"width": width, "height": 768 if width > 400 else 844}, "color_scheme": scheme,
    }  # fmt: skip
    mine, said = visit(browser, address, cookie, **options)
    desk, said_too = visit(browser, address, desk_cookie, **options)

    def look(page: Any, name: str) -> None:
        page.wait_for_timeout(150)
        folder = Path(LOOK or tmp_path)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)

    mine.goto(f"{address}/runs/demo/join/")
    look(mine, "ask")
    mine.locator("#approval textarea").fill("One GPU, every night. " * 8)
    mine.get_by_role("button", name="Ask to join").click()
    mine.get_by_role("heading", name="Your request waits").wait_for()
    look(mine, "waits")
    assert mine.evaluate(_GAP) >= 16, "the card keeps its distance"
    mine.get_by_role("button", name="Withdraw the request").click()
    mine.get_by_text("Your request is withdrawn.").wait_for()
    mine.locator("#approval textarea").fill("One GPU, every night. " * 8)
    mine.get_by_role("button", name="Ask to join").click()
    mine.get_by_role("heading", name="Your request waits").wait_for()
    assert "nobody has decided" in join(run, bob)
    desk.goto(f"{address}/control/queue/")
    desk.get_by_text("bob asks to join").first.wait_for()
    look(desk, "queue-asks")
    desk.get_by_role("link", name="Approve or refuse").click()
    look(desk, "decide")
    desk.get_by_label("Decision").select_option("approved")
    desk.get_by_role("button", name="Decide").click()
    desk.get_by_text("bob may join The demo run now.").wait_for()
    look(desk, "decided")
    assert desk.evaluate(_TABLE_FITS), "the decision stands beside the text, or below it"
    mine.reload()
    mine.get_by_text("You are approved").wait_for()
    look(mine, "approved")
    assert join(run, bob) == "joined"
    assert too_wide == []
    assert said + said_too == []
