"""A profile that is closed is closed backwards too."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories_runs import Swarm, report_make, run_make, snapshot_take, swarm_make
from tests.live.sockets import in_database, socket_open
from web.accounts.models import User
from web.accounts.services import user_profile_public_set
from web.core.events import live_ring, live_state_read
from web.monitoring import ingest
from web.monitoring.observed import peers_observe

pytestmark = pytest.mark.django_db(transaction=True)

NAME, MACHINE = "bobtheunlikely", "machine 0"
PLACES = (
    "/", "/runs/demo/", "/runs/demo/strip/", "/runs/demo/board/", "/runs/demo/leaderboard/",
    "/runs/demo/peers/{peer}/", "/runs/demo/evaluations/", "/runs/demo/join/", "/metrics",
    *(f"/api/v1/runs/{part}" for part in (
        "", "demo/", "demo/state/", "demo/events/", "demo/leaderboard/", "demo/contributions/",
        "demo/swarm/", "demo/marks/", "demo/throughput/", "demo/series/", "demo/checkpoints/",
    )),
)  # fmt: skip


@pytest.fixture
def swarm(alice: User, bob: User, charlie: User) -> Swarm:
    User.objects.filter(pk=bob.pk).update(username=NAME)
    bob.refresh_from_db()
    made = swarm_make(run_make(alice), 2, users=[bob, charlie])
    now = timezone.now()
    snapshot_take(made, now - timedelta(seconds=2))
    snapshot_take(made, now, epoch=1, finished_epochs=(report_make(made, 0, now),))
    return made


def told(client: Client, swarm: Swarm) -> dict[str, str]:
    """Return what each public place says that names bob or his machine."""
    peer = swarm.volunteers[0].peer.public_id
    texts = {"ring": json.dumps(live_ring("demo")), "kept": json.dumps(live_state_read("demo"))}
    for place in PLACES:
        response: Any = client.get(place.format(peer=peer))
        assert response.status_code == 200, place
        texts[place] = response.getvalue().decode()
    return {place: text for place, text in texts.items() if NAME in text or MACHINE in text}


def test_no_page_answer_or_kept_message_names_somebody_who_has_gone_private(
    client: Client, swarm: Swarm, bob: User
) -> None:
    named = told(client, swarm)
    shown = {"ring", "kept", "/runs/demo/", "/api/v1/runs/demo/state/", "/api/v1/runs/demo/events/"}
    assert named.keys() >= shown
    user_profile_public_set(bob, is_public=False)
    assert told(client, swarm) == {}
    state = client.get("/api/v1/runs/demo/state/").json()
    names = sorted(peer["name"] for peer in state["peers"].values())
    assert names == ["a volunteer", "charlie"], "and others keep theirs"
    texts = [row["text"] for row in client.get("/api/v1/runs/demo/events/").json()["items"]]
    assert "a volunteer joined" in texts
    snapshot_take(swarm)
    assert told(client, swarm) == {}


async def test_open_pages_and_those_that_come_back_are_not_told_the_name_again(
    swarm: Swarm, bob: User
) -> None:
    async with socket_open() as early:
        first = await early.next()
        await in_database(snapshot_take, swarm)
        await early.settle()
        await in_database(user_profile_public_set, bob, is_public=False)
        begun = len(early.frames)
        own = swarm.volunteers[0].peer.public_id
        while early.state["peers"][own]["name"] == NAME:
            await early.next()
        await early.settle()
        peer = early.state["peers"][own]
        assert (peer["name"], peer["device"]) == ("a volunteer", "")
        async with socket_open(since=first["seq"]) as late:
            await late.settle()
            assert late.frames[0]["type"] == "run.snapshot"
            assert NAME not in json.dumps([early.frames[begun:], late.frames])
    async with socket_open(since=1) as later:
        await later.settle()
        assert NAME not in json.dumps(later.frames)


def test_a_report_that_is_taken_in_meanwhile_does_not_bring_the_name_back(
    client: Client, swarm: Swarm, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def observe(*arguments: Any) -> Any:
        observed = peers_observe(*arguments)
        user_profile_public_set(User.objects.get(pk=bob.pk), is_public=False)
        return observed

    monkeypatch.setattr(ingest, "peers_observe", observe)
    snapshot_take(swarm)
    assert told(client, swarm) == {}
