"""A run's page in a real browser on a real server: live, reconnecting, polling, hidden, stale."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tests.frontend.chromium import CHROMIUM, browser_open
from tests.live.driver import LiveSite
from tests.servers import port_free

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
    pytest.mark.timeout(240),
]
NO_SOCKETS = """window.WebSocket = class {
  constructor() { setTimeout(() => this.onclose && this.onclose({ code: 1006 }), 5); }
  close() {}
};"""
HIDE = """Object.defineProperty(document, "hidden", { get: () => window.isAway === true });"""
TURN = "(away) => { window.isAway = away; document.dispatchEvent(new Event('visibilitychange')); }"
PHONE = {"width": 390, "height": 844}
LAPTOP = {"width": 1366, "height": 768}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[LiveSite]:
    site = LiveSite(tmp_path_factory.mktemp("live-site"), redis_server, port_free())
    site.seed()
    yield site
    site.stop()


@pytest.fixture
def site(served: LiveSite) -> LiveSite:
    """The site, at work, with a report of this moment."""
    if served.process is None:
        served.serve()
    served.report()
    return served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browser_open() as browser:
        yield browser


class Watched:
    """A page, with the frames that came and what was said."""

    def __init__(self, browser: Any, *scripts: str, **options: Any) -> None:
        self.page = browser.new_context(**{"viewport": LAPTOP, **options}).new_page()
        self.frames: list[dict[str, Any]] = []
        self.said: list[str] = []
        for script in scripts:
            self.page.add_init_script(script)
        self.page.on("websocket", lambda ws: ws.on("framereceived", self._frame))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def _frame(self, text: str | bytes) -> None:
        self.frames.append(json.loads(text))

    def open(self, site: LiveSite, how: str = "live") -> None:
        self.page.goto(site.page)
        self.is_connected(how)

    def is_connected(self, how: str) -> None:
        self.page.wait_for_selector(f"main[data-connection={how}]", timeout=25_000)

    def text(self, hook: str) -> str:
        return str(self.page.locator(hook).first.inner_text())

    def waits_for(self, hook: str, is_right: Callable[[str], bool], seconds: float = 15) -> str:
        ends = time.monotonic() + seconds
        while not is_right(self.text(hook)):
            assert time.monotonic() < ends, f"{hook} stays {self.text(hook)!r}"
            self.page.wait_for_timeout(100)
        return self.text(hook)


@pytest.fixture
def watch(browser: Any) -> Iterator[Callable[..., Watched]]:
    opened: list[Watched] = []

    def make(*scripts: str, **options: Any) -> Watched:
        opened.append(Watched(browser, *scripts, **options))
        return opened[-1]

    yield make
    for watched in opened:
        assert watched.said == []
        watched.page.context.close()


def accumulated(site: LiveSite) -> Callable[[str], bool]:
    return lambda text: text == f"{3 * site.samples:,}"


def test_numbers_peers_and_events_come_without_a_reload(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.open(site)
    watched.page.evaluate("window.stays = true")
    before = watched.text("[data-counter]")
    site.report()
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site))
    watched.waits_for("[data-counter]", lambda text: text != before)
    watched.waits_for("[data-live=reason]", lambda text: "3 peers" in text)
    assert watched.page.locator("[data-peers] tbody tr[data-key]").count() == 3
    watched.waits_for("[data-events]", lambda text: "joined" in text)
    assert watched.page.get_by_role("progressbar").get_attribute("aria-valuetext") == (
        f"{3 * site.samples:,} of 1,000 samples, {3 * site.samples / 10:.3g} %"
    )
    assert watched.page.evaluate("window.stays") is True


def test_a_restart_shows_a_banner_after_three_seconds_and_what_was_missed_is_replayed(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.open(site)
    banner = watched.page.locator("[data-live-banner]")
    site.stop()
    watched.is_connected("lost")
    assert banner.is_hidden()
    watched.page.wait_for_timeout(3300)
    assert banner.is_visible()
    assert "Reconnecting" in banner.inner_text()
    watched.frames.clear()
    site.serve()
    site.report()
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site), 40)
    kinds = {frame["type"] for frame in watched.frames}
    assert kinds <= {"run.patch", "run.event"}, "a whole state was not needed"
    assert banner.is_hidden()


def test_a_gap_that_cannot_be_replayed_brings_a_whole_state(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(HIDE)
    watched.open(site)
    watched.page.evaluate(TURN, True)
    watched.is_connected("hidden")
    site.report()
    with redis.Redis.from_url(site.redis_url) as store:
        store.flushall()
    site.stop()  # with its own copy of what was said
    site.serve()
    site.report()
    watched.frames.clear()
    watched.page.evaluate(TURN, False)
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site))
    assert watched.frames[0]["type"] == "run.snapshot"


def test_without_websockets_the_page_asks_and_an_unchanged_state_costs_little(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(NO_SOCKETS)
    asked: list[dict[str, str]] = []
    watched.page.on(
        "request",
        lambda request: asked.append(request.all_headers()) if "/state/" in request.url else None,
    )
    watched.open(site, "polling")
    site.report()
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site))
    assert "5 s" in watched.text("[data-connection]")
    watched.page.wait_for_timeout(6000)
    assert any("if-none-match" in headers for headers in asked)
    assert watched.page.locator("[data-live-banner]").is_hidden()


def test_a_hidden_tab_lets_go_of_its_socket_and_catches_up_when_seen(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(HIDE)
    watched.open(site)
    watched.page.evaluate(TURN, True)
    watched.is_connected("hidden")
    before = watched.text("[data-live=samples_accumulated]")
    site.report()
    watched.page.wait_for_timeout(1500)
    assert watched.text("[data-live=samples_accumulated]") == before
    watched.page.evaluate(TURN, False)
    watched.is_connected("live")
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site))


def test_numbers_stand_still_and_the_state_is_unknown_when_nothing_is_heard(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.page.clock.install()
    watched.open(site)
    site.report(samples_per_second=50.0)
    watched.waits_for("[data-live=samples_accumulated]", accumulated(site))
    watched.page.clock.fast_forward(40_000)
    watched.waits_for("[data-live=state]", lambda text: text == "Unknown")
    assert "coordinator was last heard" in watched.text("[data-live=reason]")
    stands = watched.text("[data-counter]")
    assert stands == f"{3 * site.samples:,}", "what was foretold is taken back"
    watched.page.clock.fast_forward(5_000)
    assert watched.text("[data-counter]") == stands
    assert watched.page.locator(".tile.is-stale").count() == 3
    assert "left" not in watched.text("[data-goal]")


def test_the_theme_that_was_chosen_stays(site: LiveSite, watch: Callable[..., Watched]) -> None:
    watched = watch(color_scheme="light")
    watched.open(site)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = watched.page.evaluate(colour)
    watched.page.click("[data-theme-choice=dark]")
    dark = watched.page.evaluate(colour)
    assert dark != light
    watched.page.reload()
    assert watched.page.evaluate(colour) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_essentials_fit_the_first_screen_of_a_phone(
    scheme: str, site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(viewport=PHONE, color_scheme=scheme, has_touch=True)
    watched.open(site)
    for hook in ("[data-live=state]", "[data-counter]", "[data-comb]", ".tiles"):
        box = watched.page.locator(hook).first.bounding_box()
        assert box["y"] + box["height"] <= PHONE["height"], hook
        assert box["x"] + box["width"] <= PHONE["width"], hook
    assert not watched.page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_the_signature_of_the_config_is_checked_in_the_browser(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.open(site)
    watched.waits_for("[data-verify-chip]", lambda text: text == "Signature checked")
    forged = watch(
        """document.addEventListener("DOMContentLoaded", () => {
          const shown = document.querySelector("[data-verify-body]");
          shown.textContent = shown.textContent.replace("_size\\": 1000", "_size\\": 9");
        }, { capture: true });"""
    )
    forged.open(site)
    forged.waits_for("[data-verify-chip]", lambda text: text == "Signature does not fit")
    old = watch("delete SubtleCrypto.prototype.importKey;")
    old.open(site)
    old.waits_for("[data-verify-chip]", lambda text: text == "Not checked here")
    assert "Ed25519" in old.text("[data-verify-text]")
