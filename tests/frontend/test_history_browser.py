"""Charts, timeline and replay in a real browser: zoom, address, keyboard, and without scripts."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.frontend.chromium import CHROMIUM, browser_open
from tests.frontend.test_browser import EXPECTED
from tests.pages.pasts import past_scene
from web.accounts.models import User
from web.accounts.services import service_user_get

RUN = "/runs/python-docs/"
HISTORY = f"{RUN}history/"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@pytest.fixture
def address(transactional_db: None, live_server: LiveServer, alice: User, bob: User) -> str:
    past_scene(alice, [service_user_get("beeyard"), bob])
    return str(live_server.url)


@pytest.fixture
def browser(address: str) -> Iterator[Any]:
    """Last of the fixtures: while it runs, this thread may not use the database."""
    with browser_open() as browser:
        yield browser


def open_page(browser: Any, **options: Any) -> tuple[Any, list[str]]:
    page, said = browser.new_context(**options).new_page(), []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and said.append(m.text))
    return page, said


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait in small steps; the content policy forbids the browser to evaluate our text."""
    for _ in range(60):
        if holds():
            return
        time.sleep(0.1)
        page.evaluate("1")
    raise AssertionError(f"it did not happen; the address is {page.url}")


def moment(page: Any) -> str:
    """Return the instant that the replay shows."""
    return str(page.locator("[data-moment-at]").get_attribute("data-moment-at"))


def errors(said: list[str]) -> list[str]:
    return [text for text in said if not text.startswith(EXPECTED)]


def test_a_zoom_refetches_goes_into_the_address_and_back(browser: Any, address: str) -> None:
    page, said = open_page(browser, viewport={"width": 1366, "height": 768})
    asked: list[str] = []
    page.on("request", lambda request: "/series/?" in request.url and asked.append(request.url))
    page.goto(address + RUN)
    page.wait_for_selector("[data-chart=loss] .chart-mark")
    box = page.locator("[data-chart=loss] .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 100, steps=4)
    page.mouse.up()
    until(page, lambda: "from=" in page.url)
    page.wait_for_timeout(400)
    assert any("from=" in url and "to=" in url for url in asked), "the stretch is fetched anew"
    assert "from=" in page.locator("#charts [data-csv]").get_attribute("href")
    page.reload()
    page.wait_for_selector("[data-chart=loss] .uplot")
    assert page.locator("[data-unzoom]").is_visible()
    page.go_back()
    until(page, lambda: "from=" not in page.url)
    assert page.locator("[data-unzoom]").is_hidden()
    assert errors(said) == []


def test_after_a_roll_back_the_epoch_axis_names_each_lineage(browser: Any, address: str) -> None:
    page, said = open_page(browser)
    page.goto(address + RUN + "?x=epoch&smooth=0.9")
    page.wait_for_selector("[data-chart=loss] .u-legend")
    legend = page.locator("[data-chart=loss] .u-legend").inner_text()
    assert "lineage 1, smoothed" in legend
    assert "lineage 2, smoothed" in legend
    page.click("[data-set=smooth][data-to='0']")
    until(page, lambda: "smooth" not in page.url)
    assert "smoothed" not in page.locator("[data-chart=loss] .u-legend").inner_text()
    page.go_back()
    until(page, lambda: "smooth=0.9" in page.url)
    assert errors(said) == []


def test_the_history_opens_on_the_page_of_a_run_when_one_gets_there(
    browser: Any, address: str
) -> None:
    page, said = open_page(browser, viewport={"width": 1366, "height": 768})
    page.goto(address + RUN)
    page.locator("#history").scroll_into_view_if_needed()
    for name in ("line", "throughput", "spent", "share"):
        page.wait_for_selector(f"[data-history-chart={name}] .uplot")
    legend = page.locator("[data-history-chart=throughput] .u-legend").inner_text()
    assert "CPU" in legend
    assert "RTX 30 series" in legend
    assert errors(said) == []


def test_the_replay_is_scrubbed_by_keyboard_and_shared_by_its_address(
    browser: Any, address: str
) -> None:
    page, said = open_page(browser)
    page.goto(address + HISTORY)
    page.wait_for_selector("[data-history-chart=line] .uplot")
    newest = moment(page)
    page.focus("[data-scrub-range]")
    page.keyboard.press("Home")
    until(page, lambda: moment(page) != newest)
    first = moment(page)
    assert "at=" in page.url
    assert page.locator("[data-scrub-range]").get_attribute("aria-valuetext")

    page.click("[data-moment-box] >> text=Later")
    until(page, lambda: moment(page) != first)
    shared = page.url
    second = moment(page)
    other, _ = open_page(browser)
    other.goto(shared)
    assert moment(other) == second

    page.click("[data-moment-box] >> text=Live")
    until(page, lambda: moment(page) == newest)
    assert "at=" not in page.url
    page.go_back()
    until(page, lambda: moment(page) == second)
    assert errors(said) == []


def test_a_live_replay_goes_on_by_itself_and_a_past_one_stays(browser: Any, address: str) -> None:
    page, said = open_page(browser)
    page.clock.install()
    page.goto(address + HISTORY)
    page.wait_for_selector("[data-history-chart=line] .uplot")
    asked: list[str] = []
    page.on("request", lambda request: "/moment/" in request.url and asked.append(request.url))
    page.clock.run_for(10_500)
    until(page, lambda: len(asked) == 1)
    page.click("[data-moment-box] >> text=Earlier")
    page.clock.run_for(1000)
    until(page, lambda: len(asked) == 2)
    page.clock.run_for(60_000)
    assert len(asked) == 2
    assert errors(said) == []


def test_a_moment_that_cannot_be_had_says_so_and_the_next_move_asks_again(
    browser: Any, address: str
) -> None:
    page, said = open_page(browser)
    page.goto(address + HISTORY)
    page.wait_for_selector("[data-history-chart=line] .uplot")
    newest = moment(page)
    behind = page.locator("[data-moment-behind]")
    page.route("**/moment/**", lambda route: route.abort())
    page.click("[data-moment-box] >> text=Earlier")
    until(page, behind.is_visible)
    assert moment(page) == newest, "what is shown stays"
    page.unroute("**/moment/**")
    page.click("[data-moment-box] >> text=Earlier")
    until(page, lambda: moment(page) != newest)
    assert behind.is_hidden()
    assert [text for text in errors(said) if "ERR_FAILED" not in text] == []


def test_a_mark_takes_the_replay_to_its_moment(browser: Any, address: str) -> None:
    page, _ = open_page(browser)
    page.goto(address + HISTORY)
    page.wait_for_selector("[data-history-chart=line] .chart-mark[data-kind=incident]")
    page.locator("[data-history-chart=line] .chart-mark[data-kind=incident]").first.focus()
    page.keyboard.press("Enter")
    until(page, lambda: "at=" in page.url)
    page.wait_for_selector("[data-moment-box] .chip:has-text('Stalled')")


def test_without_scripts_the_history_is_tables_and_links(browser: Any, address: str) -> None:
    page, _ = open_page(browser, java_script_enabled=False)
    page.goto(address + RUN)
    page.click("#history a")
    assert page.url.endswith("/history/")
    assert page.locator("#throughput tbody tr").count() > 5
    assert page.locator("#spent tbody tr").count() > 5
    page.click("[data-moment-box] >> text=Earlier")
    assert re.search(r"at=\d{4}-\d\d-\d\dT", page.url)
    assert page.locator(".moment-peers tbody tr").count() == 2
    page.fill("#replay-at", page.locator("#replay-at").input_value())
    page.click("text=Show >> visible=true")
    assert "at=" in page.url


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_history_fits_the_window(browser: Any, address: str, width: int, scheme: str) -> None:
    page, said = open_page(browser, viewport={"width": width, "height": 768}, color_scheme=scheme)
    for path in (HISTORY, f"{HISTORY}?at=2020-01-01T00:00:00", f"{RUN}?at=2020-01-01T00:00:00"):
        assert page.goto(address + path).status == 200
        page.wait_for_selector("[data-history-chart=share] .uplot")
        page.wait_for_timeout(200)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), path
    assert errors(said) == []
