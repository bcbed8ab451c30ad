"""What the server wrote into a run's page follows the run; a hidden tab asks nothing."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories_runs import report_make
from tests.frontend.test_browser import CHROMIUM
from tests.frontend.test_live_browser import HIDE, TURN, Watched, browser, served, site, watch
from tests.live.driver import LiveSite

__all__ = ["browser", "served", "site", "watch"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
    pytest.mark.timeout(240),
]
NEXT = """
from tests.factories_runs import draft_make
from web.accounts.models import User
from web.runs.models import Run
from web.runs.services import run_config_publish, run_transition
alice, run = User.objects.get(username="alice"), Run.objects.get()
"""
PUBLISH = f"""{NEXT}
draft = draft_make(swarm={{"target_batch_size": 1000, "min_peers": 1}}, max_epochs=120)
run_config_publish(alice, run, draft)
"""


def test_the_charts_follow_finished_epochs_and_so_does_their_table(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    now = timezone.now()
    site.report(epoch=1, finished_epochs=(report_make(site.swarm, 0, now - timedelta(seconds=9)),))
    site.report(epoch=2, finished_epochs=(report_make(site.swarm, 1, now),))
    watched = watch()
    asked: list[str] = []
    watched.page.on("request", lambda request: asked.append(request.url))
    watched.page.goto(f"{site.page}?x=epoch")
    watched.is_connected("live")
    watched.page.wait_for_selector("[data-chart=loss] .uplot")
    watched.page.click("#charts .twin summary")
    newest = "#charts .twin tbody tr"
    before = watched.text(newest)
    asked.clear()
    site.report(epoch=3, finished_epochs=(report_make(site.swarm, 2, timezone.now()),))
    watched.page.click("[data-set=x][data-to=time]")
    watched.waits_for(newest, lambda text: text != before)
    asked.clear()
    before = watched.text(newest)
    site.report(epoch=4, finished_epochs=(report_make(site.swarm, 3, timezone.now()),))
    watched.waits_for(newest, lambda text: text != before)
    ends = 80
    while not any("/marks/" in url for url in asked) and ends:
        watched.page.wait_for_timeout(100)
        ends -= 1
    assert any("/marks/" in url for url in asked), "marks come without a reload"
    assert not any("/series/" in url for url in asked), "the points came with the live state"


def test_charts_that_cannot_be_had_say_so(site: LiveSite, watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.page.route("**/series/?*", lambda route: route.fulfill(status=503, body="{}"))
    watched.open(site)
    watched.page.wait_for_selector("[data-charts-behind]:visible")
    watched.page.unroute("**/series/?*")
    watched.page.click("[data-set=range][data-to='24h']")
    watched.page.wait_for_selector("[data-charts-behind]", state="hidden")


def test_a_hidden_tab_does_not_ask_by_the_clock(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(HIDE)
    watched.page.clock.install()
    asked: list[str] = []
    watched.page.on(
        "request", lambda request: asked.append(request.url) if "period=" in request.url else None
    )
    watched.open(site)
    watched.page.evaluate(TURN, True)
    watched.page.clock.run_for(65_000)
    watched.page.wait_for_timeout(500)
    assert asked == []
    watched.page.evaluate(TURN, False)
    watched.page.clock.run_for(25_000)
    watched.page.wait_for_timeout(500)
    assert len(asked) >= 1


def test_a_new_config_and_a_pause_come_into_the_page_and_are_checked(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.open(site)
    watched.page.evaluate("window.stays = true")
    assert watched.page.locator(".run-join .button").count() == 1
    watched.page.locator("#config details:has([data-verify-body]) summary").click()
    watched.waits_for("[data-verify-chip]", lambda text: text == "Signature checked")
    site._manage("shell", "-v", "0", "-c", PUBLISH)
    watched.waits_for("#config-title", lambda text: "version 2" in text, 30)
    watched.waits_for("[data-verify-chip]", lambda text: text == "Signature checked")
    assert "120" in watched.text("[data-verify-body]"), "what was open stays open"
    assert watched.page.locator("#run-head .chip-plain").get_attribute("title") == (
        "Config version 2, signed by this site"
    )
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'pause')")
    watched.waits_for(".run-join", lambda text: "Paused by its organiser" in text, 30)
    assert watched.page.evaluate("window.stays") is True
