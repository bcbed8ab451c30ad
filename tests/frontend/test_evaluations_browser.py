"""The chart of evaluations in a real browser: drawn once it is seen, and without scripts."""

from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_history_browser import browser, errors, open_page, until
from tests.pages.pasts import past_scene
from tests.pages.scenes import evaluations_make
from web.accounts.models import User

__all__ = ["browser"]

RUN = "/runs/python-docs/"
BOX = "[data-evaluation=m0]"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@pytest.fixture
def address(transactional_db: None, live_server: LiveServer, alice: User, bob: User) -> str:
    run = past_scene(alice, [bob])
    evaluations_make(run, range(2, 31, 2))
    evaluations_make(run, range(14, 31, 2), lineage=2)
    return str(live_server.url)


def reveal(page: Any) -> None:
    """Go to the evaluations, while parts above them are still loading."""

    def is_drawn() -> bool:
        page.locator("#evaluations").scroll_into_view_if_needed()
        return bool(page.locator(f"{BOX} .uplot").count())

    until(page, is_drawn)
    page.wait_for_timeout(600)
    page.locator(BOX).scroll_into_view_if_needed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_figures_are_drawn_over_epochs_and_over_samples(
    width: int, scheme: str, browser: Any, address: str, tmp_path: Any
) -> None:
    viewport = {"width": width, "height": 844}
    page, said = open_page(browser, viewport=viewport, color_scheme=scheme)
    page.goto(address + RUN)
    reveal(page)
    assert page.locator("[data-evaluation] .uplot").count() == 3
    page.locator(f"{BOX} .u-over").hover(position={"x": 150, "y": 40})
    legend = page.locator(f"{BOX} .u-legend").inner_text()
    assert "Epoch" in legend
    assert "Lineage 2" in legend
    assert "samples" in legend
    page.locator("#evaluations").screenshot(path=tmp_path / f"epochs-{width}-{scheme}.png")
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.goto(f"{address}{RUN}?x=samples")
    reveal(page)
    assert "Samples" in page.locator(f"{BOX} .u-legend").inner_text()
    page.locator("#evaluations").screenshot(path=tmp_path / f"samples-{width}-{scheme}.png")
    assert errors(said) == []


def test_without_scripts_the_page_of_its_own_has_lines_and_table(
    browser: Any, address: str
) -> None:
    page, said = open_page(browser, java_script_enabled=False)
    page.goto(f"{address}{RUN}evaluations/")
    assert page.locator("svg.chart-still polyline").count() == 6
    page.locator("#evaluations .twin summary").click()
    assert page.get_by_role("columnheader", name="Samples by then").is_visible()
    assert said == []
