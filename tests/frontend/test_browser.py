"""Pages in a real browser: fit the window, break no content policy, and say no error."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from tests.factories import device_make
from tests.frontend.chromium import CHROMIUM, browser_open
from tests.pages.scenes import DRAFT, run_scene
from web.accounts.models import User
from web.accounts.services import service_user_get
from web.monitoring.models import RunEvent
from web.runs.services import run_config_publish

WIDTHS = (390, 1366)
PATHS = (
    "/", "/runs/python-docs/", "/runs/python-docs/?range=1h&scale=log&x=epoch",
    "/runs/python-docs/join/", "/runs/python-docs/leaderboard/", "/devices/", "/account/",
    "/users/bob/", "/trust/", "/accounts/email/", "/identity/o/device",
    "/runs/python-docs/?view=bubbles", "/runs/python-docs/config/", "/runs/python-docs/events/",
    "/runs/python-docs/checkpoints/", "/runs/python-docs/countries/",
)  # fmt: skip
# The test server speaks no websocket: the page has to fall back, and the browser logs it.
EXPECTED = ("WebSocket connection to",)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@pytest.fixture
def address(transactional_db: None, live_server: LiveServer, alice: User, bob: User) -> str:
    run = run_scene(alice, [service_user_get("beeyard"), bob])
    for size in (2048, 1024):
        run_config_publish(alice, run, DRAFT | {"swarm": {"target_batch_size": size}})
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=1000 + i, at=timezone.now(), kind="x", text=f"line {i}")
        for i in range(60)
    )
    device_make(bob, "a-machine-with-quite-a-long-name-" * 2)
    return str(live_server.url)


@pytest.fixture
def cookie(address: str, bob: User) -> str:
    client = Client()
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value


@pytest.fixture
def browser(cookie: str) -> Iterator[Any]:
    """Last of the fixtures: while it runs, this thread may not use the database."""
    with browser_open() as browser:
        yield browser


def visit(browser: Any, address: str, cookie: str, **options: Any) -> tuple[Any, list[str]]:
    context = browser.new_context(**options)
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": address}])
    page, said = context.new_page(), []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and said.append(m.text))
    return page, said


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_window_and_say_no_error(
    width: int, browser: Any, address: str, cookie: str
) -> None:
    page, said = visit(browser, address, cookie, viewport={"width": width, "height": 768})
    too_wide = []
    for path in PATHS:
        assert page.goto(address + path).status == 200, path
        page.wait_for_timeout(250)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(path)
    assert too_wide == []
    assert [text for text in said if not text.startswith(EXPECTED)] == []


def test_the_first_screen_of_a_run_fits_a_laptop(browser: Any, address: str, cookie: str) -> None:
    page, _ = visit(browser, address, cookie, viewport={"width": 1366, "height": 768})
    page.goto(address + "/runs/python-docs/")
    for part in (".run-head", ".now", ".tiles", ".strip"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 768, part


def test_a_run_is_readable_without_scripts(browser: Any, address: str, cookie: str) -> None:
    page, _ = visit(browser, address, cookie, java_script_enabled=False)
    page.goto(address + "/runs/python-docs/")
    assert page.locator(".counter").inner_text() == "124,130"
    assert page.locator("[data-peers] tbody tr").count() == 2
    assert page.locator(".chart-still").count() == 2
    assert page.locator(".js-only").first.is_hidden()


def test_charts_are_drawn_and_their_view_goes_into_the_address(
    browser: Any, address: str, cookie: str
) -> None:
    page, _ = visit(browser, address, cookie)
    page.goto(address + "/runs/python-docs/")
    page.wait_for_selector(".uplot")
    assert page.locator(".uplot").count() == 2
    page.click("[data-to=log]")
    page.click("[data-to=epoch]")
    assert page.url.endswith("?scale=log&x=epoch")


def test_older_events_versions_and_countries_come_into_the_page(
    browser: Any, address: str, cookie: str
) -> None:
    page, said = visit(browser, address, cookie)
    page.goto(address + "/runs/python-docs/")
    lines = page.locator("[data-events] li")
    before = lines.count()
    page.locator(".events-more a").click()
    page.wait_for_function(f"document.querySelectorAll('[data-events] li').length > {before}")
    assert page.url == address + "/runs/python-docs/"
    page.locator("#config summary").first.click()
    page.locator("#config-against").fill("1")
    page.locator("#config-against").press("Enter")
    page.get_by_text("Version 1 → version 3").wait_for()
    page.locator("#countries").scroll_into_view_if_needed()
    page.get_by_text("never looked up from an address").wait_for()
    assert page.url == address + "/runs/python-docs/"
    assert [text for text in said if not text.startswith(EXPECTED)] == []


def test_peers_are_filtered_sorted_and_turned_into_bubbles_by_keyboard(
    browser: Any, address: str, cookie: str
) -> None:
    page, said = visit(browser, address, cookie)
    page.goto(address + "/runs/python-docs/?range=1h")
    rows = page.locator("[data-peers] tbody tr")
    page.locator("[name=peer]").fill("bob")
    assert rows.count() == 1
    page.locator("a[data-sort=name]").press("Enter")
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Name")
    page.get_by_label("Role").select_option("trainer")
    page.locator("a[data-view=bubbles]").press("Enter")
    assert page.url.endswith("?range=1h&peer=bob&sort=name&peer-role=trainer&view=bubbles")
    bubble = page.locator("[data-bubbles] a")
    assert bubble.get_attribute("aria-label").startswith("bob · ")
    page.reload()
    assert bubble.count() == 1
    bubble.press("Enter")
    page.wait_for_url("**/peers/*/")
    assert page.get_by_role("heading", level=1).inner_text().startswith("bob")
    assert [text for text in said if not text.startswith(EXPECTED)] == []
