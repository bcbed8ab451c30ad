"""Runs and their configs in a real browser: made, edited, checked, published, paused, finished."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories_runs import run_make, snapshot_take, swarm_make
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
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


@dataclass
class Walk:
    """One visitor's way through the pages; what is too wide is written down."""

    page: Any
    address: str
    folder: Path
    name: str
    too_wide: list[str] = field(default_factory=list)

    def look(self, name: str) -> None:
        self.page.wait_for_timeout(150)
        self.page.screenshot(path=self.folder / f"{name}-{self.name}.png", full_page=True)
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.too_wide.append(name)

    def sees(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for(timeout=8000)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def follow(self, name: str) -> None:
        self.page.get_by_role("link", name=name).click()

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(label).fill(text)


def make_and_publish(walk: Walk) -> None:
    page = walk.page
    page.goto(f"{walk.address}/control/")
    walk.look("list")
    walk.follow("New run")
    walk.look("new")
    walk.fill("Title", "Tiny things")
    walk.fill("Address", "tiny-things")
    walk.fill("Summary", "To try it.")
    page.get_by_label("Tiny", exact=False).first.check()
    walk.press("Make the run")
    page.wait_for_url("**/tiny-things/draft/")
    walk.look("draft")
    walk.fill("Target batch size", "many")
    walk.press("Save and check")
    walk.sees("1 value does not fit yet")
    assert page.get_by_label("Target batch size").input_value() == "many", "nothing is lost"
    walk.look("draft-wrong")
    walk.fill("Target batch size", "512")
    page.get_by_label("Robust averaging").select_option("off")
    walk.press("Save and check")
    page.wait_for_url("**/draft/check/")
    walk.sees("1 warning to confirm")
    walk.look("check")
    walk.press("Publish version 1")
    assert page.url.endswith("/draft/check/"), "the browser asks for the tick first"
    page.get_by_label("I know, publish all the same").check()
    walk.press("Publish version 1")
    page.wait_for_url("**/tiny-things/*#configs")
    walk.sees("Version 1 is published")
    walk.look("published")


def open_pause_and_resume(walk: Walk) -> None:
    walk.follow("Open…")
    walk.press("Open the run")
    walk.sees("was opened by alice")
    walk.follow("Pause…")
    walk.sees("Nobody trains now.")
    walk.page.get_by_label("How long").select_option("60")
    walk.fill("Reason", "a new disk")
    walk.look("pause")
    walk.press("Pause the run")
    walk.sees("a new disk")
    walk.look("paused")
    walk.follow("Open…")
    walk.press("Open the run")


def change_and_finish(walk: Walk) -> None:
    page, desk = walk.page, f"{walk.address}/control/runs/tiny-things/"
    walk.follow("New version…")
    walk.fill("Hidden", "64")
    walk.press("Save and check")
    walk.sees("A new lineage begins (2)")
    walk.look("check-lineage")
    page.goto(desk)
    walk.follow("Clone…")
    walk.look("clone")
    page.goto(f"{walk.address}/control/tasks/")
    walk.look("tasks")
    page.goto(f"{desk}message/")
    walk.fill("Message", "We are done.")
    walk.press("Send")
    walk.follow("Finish…")
    walk.look("finish")
    walk.press("Finish the run")
    walk.sees("was finished by alice")
    walk.look("finished")
    page.goto(f"{walk.address}/control/")
    walk.look("list-after")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_a_run_is_made_edited_checked_published_paused_resumed_and_finished(
    width: int, scheme: str, browser: Any, address: str, cookie: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 844 if width < 500 else 768}
    page, said = visit(browser, address, cookie, viewport=viewport, color_scheme=scheme)
    walk = Walk(page, address, tmp_path, f"{width}-{scheme}")
    make_and_publish(walk)
    open_pause_and_resume(walk)
    change_and_finish(walk)
    assert walk.too_wide == []
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


def test_the_browser_asks_before_unsaved_changes_are_left(
    browser: Any, address: str, cookie: str
) -> None:
    desk = f"{address}/control/runs/another-run-with-quite-a-long-name/"
    page, _ = visit(browser, address, cookie)
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.goto(f"{desk}draft/")
    assert page.get_by_text("Not saved yet").is_hidden()
    page.get_by_label("Target batch size").fill("777")
    assert page.get_by_text("Not saved yet").is_visible()
    page.get_by_role("link", name="Back", exact=True).click()
    page.wait_for_timeout(300)
    assert asked == ["beforeunload"]
    assert page.get_by_label("Target batch size").input_value() == "777"
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_text("The draft is saved").wait_for()
    page.get_by_role("link", name="Back", exact=True).click()
    page.wait_for_url(desk)
    assert asked == ["beforeunload"], "what is saved is left without a question"
