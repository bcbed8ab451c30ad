"""The page as a person sees it: live numbers, no errors, no address, both themes, both sizes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.e2e.installation import RUN, Installation, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CHROMIUM = next(
    (p for p in map(Path, ("/usr/bin/chromium", "/usr/bin/chromium-browser")) if p.exists()), None
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1366, "height": 768}


@pytest.fixture(scope="module")
def browser(require_program: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def require_program() -> None:
    import os

    if CHROMIUM is None:
        if os.environ.get("BEEYARD_REQUIRE_ALL"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed: apt-get install chromium")


@pytest.fixture
def problems() -> list[str]:
    return []


def watch(page: Page, problems: list[str]) -> None:
    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    page.on("console", console)
    page.on("pageerror", lambda error: problems.append(str(error)))


def field(page: Page, name: str) -> str:
    return (page.locator(f'[data-live="{name}"]').first.text_content() or "").strip()


def test_the_numbers_move_without_a_reload(
    training_site: Installation, browser: Browser, problems: list[str]
) -> None:
    page = browser.new_page(viewport=DESKTOP)
    watch(page, problems)
    page.goto(training_site.run_url)
    first = field(page, "seq")
    wait_for("a newer number on the page", lambda: field(page, "seq") != first, 40)
    assert int(field(page, "num_peers")) >= 1
    assert page.locator("canvas").count() >= 1, "the loss chart is missing"
    assert "/ip4/" not in page.content()
    assert not problems
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("path", ["/", f"/runs/{RUN}/", f"/runs/{RUN}/join/", "/accounts/signup/"])
def test_no_page_is_wider_than_its_window_or_complains(
    training_site: Installation,
    browser: Browser,
    problems: list[str],
    path: str,
    size: dict[str, int],
    scheme: str,
) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    watch(page, problems)
    page.goto(training_site.url + path)
    page.wait_for_timeout(600)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.locator("h1").count() == 1
    assert not problems
    context.close()


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_no_page_of_the_desk_is_wider_than_its_window_or_complains(
    training_site: Installation, browser: Browser, problems: list[str], size: dict[str, int]
) -> None:
    context = browser.new_context(viewport=size)  # type: ignore[arg-type]
    page = context.new_page()
    watch(page, problems)
    organiser = training_site.organiser()
    page.goto(f"{training_site.url}/accounts/login/")
    page.locator("input[name=login]").fill(organiser["username"])
    page.locator("input[name=password]").fill(organiser["password"])
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url(training_site.url + "/")
    for part in ("", "people/", "audit/", f"runs/{RUN}/", f"runs/{RUN}/workers/trainer-1/"):
        answer = page.goto(f"{training_site.url}/control/{part}")
        assert answer is not None
        assert answer.ok, part
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], part
    assert not problems
    context.close()


def test_the_page_can_be_read_without_javascript(
    training_site: Installation, browser: Browser
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(training_site.run_url)
    assert int(field(page, "epoch").replace(",", "")) >= 1
    assert field(page, "reason")
    assert page.get_by_role("link", name="Join").first.is_visible()
    context.close()


def test_a_person_signs_up_and_reads_how_to_join(
    training_site: Installation, browser: Browser, problems: list[str]
) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    watch(page, problems)
    page.goto(f"{training_site.url}/accounts/signup/?next=/runs/{RUN}/join/")
    page.get_by_label("Email").fill("charlie@example.org")
    page.get_by_label("Username").fill("charlie")
    page.get_by_label("Password", exact=True).fill("a-long-enough-secret")
    page.locator("form[method=post] button[type=submit]").last.click()
    page.wait_for_url("**/join/")
    assert f"beeyard join {training_site.run_url}" in page.content()
    assert not problems
    context.close()
