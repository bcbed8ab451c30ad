"""A draft that a version has overtaken: saved and published knowingly, on a phone and a laptop."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories_runs import config_publish, draft_make, run_make
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
from web.accounts.models import User
from web.runs.models import Run
from web.runs.services import draft_save

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]
LOOK = os.environ.get("BEEYARD_LOOK", "")
"""A folder that keeps the pictures."""
_TOO_WIDE = """[document.documentElement, ...document.querySelectorAll(".table-scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth).length"""


@pytest.fixture
def run(transactional_db: None, alice: User) -> Run:
    made = run_make(alice)
    draft_save(alice, made, draft_make(seed=1), revision=0)
    return made


@pytest.fixture
def cookie(run: Run, alice: User) -> str:
    client = Client()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return str(client.cookies["sessionid"].value)


@pytest.fixture
def overtaken(run: Run, cookie: str) -> None:
    config_publish(run, seed=77)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1366, 768)])
def test_what_a_newer_version_changed_is_seen_before_it_is_taken_back(
    width: int, height: int, cookie: str, overtaken: None, run: Run,
    live_server: LiveServer, tmp_path: Path, browser: Any,
) -> None:  # fmt: skip
    address, too_wide = str(live_server.url), []
    size = {"width": width, "height": height}
    page, said = visit(browser, address, cookie, viewport=size)

    def look(name: str) -> None:
        page.wait_for_timeout(150)
        page.screenshot(path=Path(LOOK or tmp_path) / f"{name}-{width}.png", full_page=True)
        if page.evaluate(_TOO_WIDE):
            too_wide.append(name)

    draft = f"{address}/control/runs/demo/draft/"
    page.goto(draft)
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("heading", name="Version 2 was published meanwhile").wait_for()
    look("conflict")
    page.goto(f"{draft}check/")
    page.get_by_role("heading", name="Version 2 was published after").wait_for()
    for box in page.get_by_role("checkbox").all():
        box.check()
    look("behind")
    page.get_by_role("button", name="Publish version 3").click()
    page.get_by_text("Version 3 is published").wait_for()
    page.goto(draft)
    assert too_wide == []
    assert [text for text in said if "409" not in text] == []
