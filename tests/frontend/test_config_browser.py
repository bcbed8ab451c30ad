"""Runs and their configs in a real browser: made, edited, checked, published, paused, finished."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories_runs import run_make, snapshot_take, swarm_make
from tests.frontend.test_browser import CHROMIUM, browser, visit
from web.accounts.models import User
from web.runs.services import artifact_store

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@pytest.fixture
def address(transactional_db: None, live_server: LiveServer, alice: User) -> str:
    alice.is_superuser = True
    alice.save()
    snapshot_take(swarm_make(run_make(alice, "another-run-with-quite-a-long-name"), 3))
    artifact_store(b"pieces", "tokenizer.json")
    return str(live_server.url)


@pytest.fixture
def cookie(address: str, alice: User) -> str:
    client = Client()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_a_run_is_made_edited_checked_published_paused_resumed_and_finished(
    width: int, scheme: str, browser: Any, address: str, cookie: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 844 if width < 500 else 768}
    page, said = visit(browser, address, cookie, viewport=viewport, color_scheme=scheme)
    too_wide = []

    def look(name: str) -> None:
        page.wait_for_timeout(150)
        page.screenshot(path=tmp_path / f"{name}-{width}-{scheme}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)

    def sees(text: str) -> None:
        page.get_by_text(text).first.wait_for(timeout=8000)

    def press(name: str) -> None:
        page.get_by_role("button", name=name, exact=True).click()

    page.goto(f"{address}/control/")
    look("list")
    page.get_by_role("link", name="New run").click()
    look("new")
    page.get_by_label("Title").fill("Tiny things")
    page.get_by_label("Address").fill("tiny-things")
    page.get_by_label("Summary").fill("To try it.")
    page.get_by_label("Tiny", exact=False).first.check()
    press("Make the run")
    page.wait_for_url("**/tiny-things/draft/")
    look("draft")
    page.get_by_label("Target batch size").fill("many")
    press("Save and check")
    sees("1 value does not fit yet")
    assert page.get_by_label("Target batch size").input_value() == "many", "nothing is lost"
    look("draft-wrong")
    page.get_by_label("Target batch size").fill("512")
    page.get_by_label("Robust averaging").select_option("off")
    press("Save and check")
    page.wait_for_url("**/draft/check/")
    sees("1 warning to confirm")
    look("check")
    press("Publish version 1")
    assert page.url.endswith("/draft/check/"), "the browser asks for the tick first"
    page.get_by_label("I know, publish all the same").check()
    press("Publish version 1")
    page.wait_for_url("**/tiny-things/*#configs")
    sees("Version 1 is published")
    look("published")
    page.get_by_role("link", name="Open…").click()
    press("Open the run")
    sees("was opened by alice")
    page.get_by_role("link", name="Pause…").click()
    sees("Nobody trains now.")
    page.get_by_label("How long").select_option("60")
    page.get_by_label("Reason").fill("a new disk")
    look("pause")
    press("Pause the run")
    sees("a new disk")
    look("paused")
    page.get_by_role("link", name="Open…").click()
    press("Open the run")
    page.get_by_role("link", name="New version…").click()
    page.get_by_label("Hidden").fill("64")
    press("Save and check")
    sees("A new lineage begins (2)")
    look("check-lineage")
    page.goto(f"{address}/control/runs/tiny-things/")
    page.get_by_role("link", name="Clone…").click()
    look("clone")
    page.goto(f"{address}/control/tasks/")
    look("tasks")
    page.goto(f"{address}/control/runs/tiny-things/message/")
    page.get_by_label("Message").fill("We are done.")
    press("Send")
    page.get_by_role("link", name="Finish…").click()
    look("finish")
    press("Finish the run")
    sees("was finished by alice")
    look("finished")
    page.goto(f"{address}/control/")
    look("list-after")
    assert too_wide == []
    assert said == []


def test_two_organisers_of_one_draft_choose_between_their_values(
    browser: Any, address: str, cookie: str, tmp_path: Path, live_server: LiveServer
) -> None:
    slug = "another-run-with-quite-a-long-name"
    page, said = visit(browser, address, cookie, viewport={"width": 390, "height": 844})
    second, _ = visit(browser, address, cookie)
    for tab in (page, second):
        tab.goto(f"{address}/control/runs/{slug}/draft/")
    second.get_by_label("Target batch size").fill("777")
    second.get_by_role("button", name="Save the draft").click()
    second.wait_for_load_state()
    page.get_by_label("Target batch size").fill("888")
    page.get_by_label("Keep").fill("9")
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_text("changed this draft meanwhile").wait_for()
    page.screenshot(path=tmp_path / "conflict-390.png", full_page=True)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.get_by_label("777").check()
    page.get_by_role("button", name="Save what is chosen").click()
    page.get_by_text("The draft is saved").wait_for()
    assert page.get_by_label("Target batch size").input_value() == "777"
    assert page.get_by_label("Keep").input_value() == "9"
    assert [text for text in said if "409" not in text] == []
