"""What the server wrote into a run's page follows the run; a hidden tab asks nothing."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from tests.factories import bearer
from tests.factories_runs import report_make, signed
from tests.frontend.chromium import CHROMIUM
from tests.frontend.test_live_browser import HIDE, TURN, Watched, browser, served, site, watch
from tests.live.driver import LiveSite
from tests.live.site import SLUG
from training.protocol.claims import CheckpointFile, CheckpointManifest
from training.protocol.names import TYP_CHECKPOINT

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


def saved(site: LiveSite, epoch: int) -> None:
    """The coordinator registers a saved state."""
    manifest = CheckpointManifest(
        run=SLUG, lineage=1, epoch=epoch, config_version=1, saved_at=timezone.now(),
        files=(CheckpointFile(name="model.safetensors", sha256="ab" * 32, size=10),),
    )  # fmt: skip
    key = site.swarm.coordinator_key
    answer = httpx.post(
        site.page.replace("/runs/", "/api/v1/runs/") + "checkpoints/",
        json={"manifest": signed(manifest, TYP_CHECKPOINT, key, timezone.now())},
        headers=bearer(site.swarm.token),
        timeout=20,
    )
    assert answer.is_success, answer.text


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


def test_the_axis_of_epochs_follows_finished_epochs(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    site.report(epoch=11, finished_epochs=(report_make(site.swarm, 9, timezone.now()),))
    site.report(epoch=12, finished_epochs=(report_make(site.swarm, 11, timezone.now()),))
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
    site.report(epoch=13, finished_epochs=(report_make(site.swarm, 12, timezone.now()),))
    watched.waits_for(newest, lambda text: text != before and "\t13\t" in text)
    with watched.page.expect_response(lambda answer: "by=epoch" in answer.url) as answer:
        pass
    assert answer.value.json()["epoch"][-1] == 12
    assert not any("/series/" in url and "by=epoch" not in url for url in asked)


def test_the_tables_of_the_history_are_filled_again(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch()
    watched.open(site)
    watched.page.locator("#history").scroll_into_view_if_needed()
    watched.page.click("#timeline .twin summary")
    newest = "#timeline .twin tbody tr"
    before = watched.text(newest)
    watched.page.evaluate("window.stays = document.querySelector('#timeline')")
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'pause')")
    watched.waits_for(newest, lambda text: text != before and "aused" in text, 45)
    assert watched.page.locator("#timeline .twin[open]").count() == 1
    assert watched.page.evaluate("window.stays.isConnected") is True
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'open')")


def test_a_saved_state_comes_into_the_page(site: LiveSite, watch: Callable[..., Watched]) -> None:
    watched = watch()
    watched.open(site)
    assert "No checkpoint yet" in watched.text("#checkpoints")
    saved(site, 3)
    watched.waits_for("#checkpoints", lambda text: "No checkpoint yet" not in text, 30)
    assert watched.page.locator("#checkpoints tbody tr").count() == 1


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
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'open')")


def test_a_tab_that_is_hidden_between_news_and_redraw_redraws_when_it_is_seen_again(
    site: LiveSite, watch: Callable[..., Watched]
) -> None:
    watched = watch(HIDE)
    watched.page.clock.install()
    asked: list[str] = []
    watched.page.on(
        "request",
        lambda request: asked.append(request.url) if "/history/part/" in request.url else None,
    )
    watched.open(site)
    watched.page.locator("#history").scroll_into_view_if_needed()
    watched.page.wait_for_selector("#timeline")
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'pause')")
    watched.waits_for(".run-state", lambda text: "aused" in text)
    watched.page.clock.run_for(7_000)  # told, but not yet drawn
    watched.page.evaluate(TURN, True)
    watched.page.clock.run_for(20_000)
    asked.clear()
    watched.page.evaluate(TURN, False)
    watched.page.wait_for_timeout(1000)
    site._manage("shell", "-v", "0", "-c", f"{NEXT}run_transition(alice, run, 'open')")
    assert len(asked) == 1, asked
