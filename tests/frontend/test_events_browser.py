"""Lines about what happened while nothing came: they are fetched, each once and in order."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import redis

from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_live_browser import (
    HIDE,
    NO_SOCKETS,
    TURN,
    Watched,
    browser,
    served,
    site,
    watch,
)  # fmt: skip
from tests.live.driver import LiveSite

__all__ = ["browser", "served", "site", "watch"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
    pytest.mark.timeout(240),
]
TELL = """
from web.monitoring.services.settle import run_changed_announce
from web.runs.models import Run
for number in range({first}, {end}):
    run_changed_announce(Run.objects.get(), "run.announced", f"word {{number}}")
"""
LINES = "[data-events] .event-text"


class Teller:
    """Numbers what it tells everybody who watches."""

    def __init__(self) -> None:
        self.said = 0

    def tells(self, site: LiveSite, count: int) -> None:
        first, self.said = self.said, self.said + count
        script = TELL.format(first=first, end=self.said)
        site._manage("shell", "-v", "0", "-c", script)


@pytest.fixture(scope="module")
def teller() -> Teller:
    return Teller()


def words(watched: Watched) -> list[int]:
    """Return the numbers that the page shows, from above."""
    lines = watched.page.locator(LINES).all_inner_texts()
    return [int(line.split()[1]) for line in lines if line.startswith("word ")]


def shows(watched: Watched, newest: int) -> list[int]:
    """Wait until the page shows all lines down from one, each once; return their numbers."""

    def is_whole(_: str) -> bool:
        found = words(watched)
        in_order = all(above == below + 1 for above, below in pairwise(found))
        return found[:1] == [newest] and len(found) > 1 and in_order

    watched.waits_for(LINES, is_whole, 25)
    return words(watched)


def cut(site: LiveSite, watched: Watched, teller: Teller, missed: int) -> None:
    """End the site, let things happen, and begin again without what was kept of them."""
    site.stop()
    watched.is_connected("lost")
    teller.tells(site, missed)
    with redis.Redis.from_url(site.redis_url) as store:
        store.flushall()
    watched.frames.clear()
    site.serve()
    watched.is_connected("live")
    watched.waits_for("[data-connection]", lambda _: bool(watched.frames))
    assert watched.frames[0]["type"] == "run.snapshot"


def test_what_happened_while_the_socket_was_cut_is_told_once_and_in_order(
    site: LiveSite, teller: Teller, watch: Callable[..., Watched]
) -> None:
    teller.tells(site, 60)
    watched = watch()
    watched.open(site)
    watched.page.evaluate("window.stays = true")
    watched.page.click("[data-events] .events-more a")
    watched.waits_for(LINES, lambda _: 0 in words(watched))
    cut(site, watched, teller, 3)
    teller.tells(site, 1)
    assert shows(watched, 63)[-1] == 0, "older ones that were asked for stay"
    cut(site, watched, teller, 55)
    teller.tells(site, 1)
    watched.waits_for(LINES, lambda _: len(words(watched)) <= 50, 25)
    assert 63 not in shows(watched, 119), "no older ones after a hole"
    watched.page.click("[data-events] .events-more a")
    watched.waits_for(LINES, lambda _: 63 in words(watched))
    shows(watched, 119)
    assert watched.page.evaluate("window.stays") is True


def test_lines_come_without_websockets_and_after_a_hidden_minute(
    site: LiveSite, teller: Teller, watch: Callable[..., Watched]
) -> None:
    polls, hides = watch(NO_SOCKETS), watch(HIDE)
    hides.page.clock.install()
    polls.open(site, "polling")
    hides.open(site)
    hides.page.evaluate(TURN, True)
    hides.is_connected("hidden")
    teller.tells(site, 2)
    shows(polls, teller.said - 1)
    with hides.page.expect_response(lambda answer: "/state/" in answer.url):
        hides.page.clock.run_for(61_000)
    hides.page.wait_for_timeout(300)
    hides.page.evaluate(TURN, False)
    hides.page.clock.run_for(8_000)
    shows(hides, teller.said - 1)
