"""The desk in a real browser: barring and undoing harm, on a phone and a laptop, in both themes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.control.scenes import harmed_run
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_browser import browser, visit
from web.accounts.models import User

__all__ = ["browser"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]
DESK = "/control/runs/demo/"
LONG = "somebody-with-a-name-of-30-chr"


@pytest.fixture
def address(
    transactional_db: None, live_server: LiveServer, alice: User, bob: User, charlie: User
) -> str:
    charlie.username = LONG
    charlie.save()
    harmed_run(alice, [bob, charlie, bob])
    return str(live_server.url)


@pytest.fixture
def cookie(address: str, alice: User) -> Iterator[str]:
    client = Client()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value  # type: ignore[return-value]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_the_guided_way_is_walked_and_every_page_of_it_fits(
    width: int, scheme: str, browser: Any, address: str, cookie: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 844}
    page, said = visit(browser, address, cookie, viewport=viewport, color_scheme=scheme)
    too_wide = []

    def look(name: str) -> None:
        page.wait_for_timeout(200)
        page.screenshot(path=tmp_path / f"{name}-{width}-{scheme}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(name)

    def sees(text: str) -> None:
        page.get_by_text(text).wait_for(timeout=8000)

    page.goto(f"{address}{DESK}")
    look("desk-before")
    page.goto(f"{address}{DESK}people/{LONG}/bar/")
    look("bar")
    page.get_by_label("Reason").fill("sends noise instead of gradients, for hours")
    page.get_by_role("button", name=f"Bar {LONG}").click()
    page.wait_for_url(f"**{DESK}*")
    sees("seen by 0 of 2 peers")
    look("desk-barred")
    page.get_by_role("link", name="Undo harm…").click()
    look("undo")
    page.get_by_label("Whose work", exact=True).select_option("user:bob")
    page.get_by_label("From epoch").fill("3")
    page.get_by_role("button", name="Preview").click()
    sees("This cannot be undone:")
    look("preview")
    page.get_by_label("Reason").fill("its gradients were poisoned")
    page.get_by_role("button", name="Undo the harm").click()
    assert page.url.endswith("from_epoch=3"), "the browser asks for the tick first"
    page.get_by_label("I know that this cannot be undone").check()
    page.get_by_role("button", name="Undo the harm").click()
    page.wait_for_url("**/undo/*/")
    sees("The coordinator restores the state of epoch 2")
    look("undone")
    page.wait_for_timeout(2500)
    sees("Under way")
    page.goto(f"{address}{DESK}")
    look("desk-after")
    assert too_wide == []
    assert said == []


def test_the_heads_of_the_peers_table_sort_it(browser: Any, address: str, cookie: str) -> None:
    page, said = visit(browser, address, cookie, java_script_enabled=False)
    page.goto(f"{address}{DESK}peers/")
    for head, order in (("Samples/s", "descending"), ("Trust", "ascending")):
        page.get_by_role("link", name=head, exact=True).click()
        sorted_by = page.locator("th[aria-sort]")
        assert sorted_by.count() == 1
        assert sorted_by.get_attribute("aria-sort") == order
        assert head in sorted_by.inner_text()
    assert said == []
