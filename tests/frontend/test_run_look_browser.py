"""The whole page of a run with a dozen peers of every state, as a phone and a laptop show it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from tests.frontend.chromium import CHROMIUM, browser_open
from tests.frontend.test_live_browser import LAPTOP, PHONE
from tests.pages.pasts import past_scene
from tests.pages.scenes import evaluations_make, live_make, live_peer
from training.protocol.states import PeerState, Reach, Role
from web.accounts.models import User
from web.accounts.services import service_user_get
from web.monitoring.models import Peer

LOOK = os.environ.get("BEEYARD_LOOK", "")
"""A folder that keeps the pictures."""
NAMES = ("erin", "a-volunteer-with-a-long-name", "maya", "noor", "sam", "tomas", "yuki", "zoe")
MACHINES = ("cpu", "Tesla T4", "NVIDIA GeForce RTX 3090", "NVIDIA A100-SXM4-80GB")
CUT = """[...document.querySelectorAll(".tile .small")].some(
  (words) => words.scrollWidth > words.clientWidth)"""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@pytest.fixture
def address(transactional_db: None, live_server: LiveServer, alice: User, bob: User) -> str:
    run = past_scene(alice, [service_user_get("beeyard"), bob])
    evaluations_make(run, (10, 20, 30))
    rows = {
        peer.public_id: live_peer(peer, epoch=30, samples_accumulated=400)
        for peer in Peer.objects.filter(run=run)
    }
    states, reaches = list(PeerState), list(Reach)
    member = Peer.objects.filter(run=run).first()
    assert member is not None
    for i, name in enumerate(NAMES):
        rows[f"look{i}"] = live_peer(
            member, name=name, device=f"{name}-box", managed=False, verified=i % 3 > 0,
            state=states[i % len(states)], reach=reaches[i % len(reaches)],
            role=Role.AUXILIARY if i == 5 else Role.TRAINER, hardware=MACHINES[i % len(MACHINES)],
            epoch=30 - i % 3 // 2, samples_accumulated=90 * i, samples_per_second=7.5 * i,
        )  # fmt: skip
    live_make(run, rows, epoch=30, now=timezone.now())
    return str(live_server.url)


@pytest.fixture
def browser(address: str) -> Iterator[Any]:
    """Last of the fixtures: while it runs, this thread may not use the database."""
    with browser_open() as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_page_of_a_run_fits_with_peers_of_every_state(
    size: dict[str, int], scheme: str, browser: Any, address: str, tmp_path: Path
) -> None:
    page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
    for view in ("table", "bubbles"):
        page.goto(f"{address}/runs/python-docs/?view={view}")
        page.wait_for_selector("[data-chart=loss] .uplot")
        page.locator("#history").scroll_into_view_if_needed()
        page.wait_for_selector("[data-history-chart=share] .uplot")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(500)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), view
        assert not page.evaluate(CUT), "the words of a tile are whole"
        if view == "table":
            card = page.locator("#peers").bounding_box()
            for chip in page.locator("[data-peers] [data-cell=state]").all():
                box = chip.bounding_box()
                assert box["x"] + box["width"] <= card["x"] + card["width"], "its state is in sight"
        page.evaluate("scrollTo(0, 0)")
        name = f"run-{view}-{size['width']}-{scheme}.png"
        page.screenshot(path=Path(LOOK or tmp_path) / name, full_page=True)
