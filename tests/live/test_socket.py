"""The websocket of a run's page: snapshot, patches, replay, and who gets in."""

import asyncio
from typing import Any

import pytest
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    config_publish,
    observation_make,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from tests.live.sockets import handshake, in_database, socket_open
from web.accounts.models import User
from web.core.events import live_ring_since
from web.live.limits import FRAMES
from web.monitoring.selectors import live_state
from web.runs.services import run_transition

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def swarm(alice: User, transactional_db: None) -> Swarm:
    return swarm_make(run_make(alice))


async def fresh(swarm: Swarm) -> dict[str, Any]:
    return await in_database(live_state, swarm.run)


async def test_a_page_gets_the_state_and_then_what_changes(swarm: Swarm) -> None:
    async with socket_open() as socket:
        first = await socket.next()
        assert first["type"] == "run.snapshot"
        assert first["state"] == await fresh(swarm)
        await in_database(snapshot_take, swarm)
        kinds = await socket.settle()
        assert kinds == ["run.event", "run.event", "run.patch"]
        assert [f["event"]["kind"] for f in socket.frames[1:3]] == ["peer.joined"] * 2
        assert socket.state == await fresh(swarm)
        assert all({"type", "seq", "as_of"} <= frame.keys() for frame in socket.frames)


def _epoch(swarm: Swarm) -> None:
    snapshot_take(swarm, epoch=1, finished_epochs=(report_make(swarm, 0, timezone.now()),))


def _one_left(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now, peers=(observation_make(swarm.volunteers[0], now),))


CHANGES = {
    "a snapshot": snapshot_take,
    "an epoch": _epoch,
    "a silent peer": _one_left,
    "a config": lambda swarm: config_publish(
        swarm.run, swarm={"target_batch_size": 64, "min_peers": 2}
    ),
    "a pause": lambda swarm: run_transition(swarm.run.organiser, swarm.run, "pause", "disk full"),
    "the end": lambda swarm: run_transition(swarm.run.organiser, swarm.run, "finish", "done"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_an_old_state_and_its_patches_are_the_fresh_state(swarm: Swarm, change: Any) -> None:
    await in_database(snapshot_take, swarm)
    async with socket_open() as socket:
        before = (await socket.next())["state"]
        await in_database(change, swarm)
        await socket.settle()
        now = await fresh(swarm)
        assert socket.state == now
        assert socket.state["seq"] == socket.frames[-1]["seq"] == now["seq"] > before["seq"]
    async with socket_open(since=before["seq"]) as late:
        late.state = before
        kinds = await late.settle()
        assert "run.snapshot" not in kinds
        assert kinds.count("run.patch") == 1
        assert late.state == now


async def test_a_page_that_has_everything_is_told_nothing(swarm: Swarm) -> None:
    await in_database(snapshot_take, swarm)
    seq = (await fresh(swarm))["seq"]
    async with socket_open(since=seq) as socket:
        assert await socket.settle() == []
        await in_database(snapshot_take, swarm)
        assert await socket.settle() == ["run.patch"]


async def test_a_number_that_cannot_be_replayed_gets_a_snapshot(swarm: Swarm) -> None:
    await in_database(snapshot_take, swarm)
    ring = await in_database(live_ring_since, "demo", 0)
    first = ring[0]["seq"] - 1
    for since in (first, first + 1):
        async with socket_open(since=since) as socket:
            assert "run.snapshot" not in await socket.settle()
    for since in (first - 1, 10**6, "soon", "-1", "1" * 30, ""):
        async with socket_open(since=since) as socket:
            assert (await socket.next())["type"] == "run.snapshot", since


async def test_many_changes_are_at_most_two_patches_a_second(
    swarm: Swarm, ticks: pytest.MonkeyPatch
) -> None:
    ticks.undo()
    await in_database(snapshot_take, swarm)
    async with socket_open() as socket:
        await socket.next()
        began = asyncio.get_running_loop().time()
        num_changes = 0
        while asyncio.get_running_loop().time() - began < 1.2:
            await in_database(snapshot_take, swarm)
            num_changes += 1
        kinds = await socket.settle(quiet_seconds=0.7)
        assert num_changes > 6
        assert kinds.count("run.patch") <= 4
        assert socket.state == await fresh(swarm)


GARBAGE = (
    {"text": ""},
    {"text": "hello"},
    {"text": "[]"},
    {"text": '{"type":"pong"}'},
    {"text": '{"type":"ping","x":1}'},
    {"text": "[" * 190},
    {"text": "x" * 10_000},
    {"bytes": b'{"type":"ping"}'},
)


async def test_anything_but_a_ping_closes_the_socket(swarm: Swarm) -> None:
    for frame in GARBAGE:
        async with socket_open() as socket:
            await socket.next()
            await socket.communicator.send_input({"type": "websocket.receive", **frame})
            assert await socket.closed() == 4400, frame


async def test_a_few_pings_are_fine_and_a_flood_is_not(swarm: Swarm) -> None:
    async with socket_open() as socket:
        await socket.next()
        for _ in range(FRAMES - 1):
            await socket.send('{"type": "ping"}')
        assert await socket.settle() == []
        for _ in range(FRAMES):
            await socket.send('{"type": "ping"}')
        assert await socket.closed() == 4429


async def test_one_address_has_a_limit_of_sockets(swarm: Swarm, settings: Any) -> None:
    settings.LIVE_SOCKETS_PER_CLIENT = 2
    async with socket_open(), socket_open() as second:
        await second.next()
        async with socket_open() as third:
            assert await third.closed() == 4429
    async with socket_open() as later:
        assert (await later.next())["type"] == "run.snapshot"


async def test_an_unknown_run_closes_with_4404(swarm: Swarm) -> None:
    async with socket_open("no-such-run") as socket:
        assert await socket.closed() == 4404


async def test_pages_of_other_sites_are_refused_and_programs_are_not(swarm: Swarm) -> None:
    _, is_open = await handshake("/ws/runs/demo/", [(b"origin", b"https://evil.example")])
    assert not is_open
    async with socket_open(origin=None) as socket:
        assert (await socket.next())["type"] == "run.snapshot"
