"""The log of a run and the viewers' places in it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.live.rooms import Client, Truth, event_message, patch_message, settled
from web.core.events import RING_BYTES, RING_SIZE
from web.live import room as room_module
from web.live import viewer as viewer_module
from web.live.room import Room


@pytest.fixture(autouse=True)
def _shorter_ticks(ticks: pytest.MonkeyPatch) -> None:
    ticks.setattr(room_module, "TICK_SECONDS", 0.03)
    ticks.setattr(room_module, "_GATHER_SECONDS", 0.0)
    ticks.setattr(viewer_module, "TICK_SECONDS", 0.03)


@pytest.fixture(params=[False, True], ids=["one task each", "written at once"], autouse=True)
def ways_to_a_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "writes_at_once", request.param)


@pytest.fixture
def truth() -> Truth:
    return Truth()


@pytest.fixture
async def room(truth: Truth) -> AsyncIterator[Room]:
    room = Room("demo", truth.read)
    yield room
    room.close()


async def test_a_viewer_gets_a_snapshot_and_then_what_changes(room: Room, truth: Truth) -> None:
    truth.change(n=1)
    client = Client(room).start()
    await settled()
    room.receive(truth.change(n=2, peers={"a": {"epoch": 1}}))
    await settled()
    room.receive(truth.change(peers={"a": None}))
    await settled()
    await client.stop()
    assert client.kinds == ["snapshot", "patch", "patch"]
    assert client.state == truth.state


async def test_changes_within_a_tick_are_one_patch(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    for n in range(20):
        room.receive(truth.change(n=n))
    await settled()
    await client.stop()
    assert len(client.frames) <= 3, "the snapshot, the first change, the rest"
    assert client.state == truth.state
    assert client.frames[-1]["seq"] == 20


async def test_all_viewers_at_one_place_share_the_same_text(room: Room, truth: Truth) -> None:
    room.receive(truth.change(n=1))
    room.receive(truth.change(n=2))
    first = room.frames_since(1, room.generation)
    assert first is not None
    assert first is room.frames_since(1, room.generation)


async def test_a_client_that_stops_reading_delays_nobody(room: Room, truth: Truth) -> None:
    slow, fast = Client(room).start(), Client(room).start()
    await settled()
    slow.can_read.clear()
    for n in range(5):
        room.receive(truth.change(n=n))
        await settled(0.04)
    assert fast.state == truth.state
    assert len(slow.frames) == 1
    slow.can_read.set()
    await settled()
    assert slow.state == truth.state
    assert len(slow.frames) <= 3, "one that was under way, one for all the rest"
    await asyncio.gather(slow.stop(), fast.stop())


async def test_a_client_that_slept_past_the_log_gets_a_snapshot(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    client.can_read.clear()
    for n in range(RING_SIZE + 50):
        room.receive(truth.change(n=n))
        if n == 0:
            await settled()
    client.can_read.set()
    await settled()
    await client.stop()
    assert client.kinds == ["snapshot", "patch", "snapshot"]
    assert client.state == truth.state


async def test_the_log_of_large_patches_is_bounded_in_bytes(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    client.can_read.clear()
    bulk = "x" * (RING_BYTES // 4)
    for n in range(8):
        room.receive(truth.change(n=n, bulk=bulk))
        if n == 0:
            await settled()
    assert (room.base, room.last) == (5, 8)
    client.can_read.set()
    await settled(0.2)
    assert client.kinds == ["snapshot", "patch", "snapshot"]
    assert client.state == truth.state
    room.receive(truth.change(bulk=bulk * 5))
    await settled(0.2)
    await client.stop()
    assert client.kinds[-1] == "patch", "the newest is sent, however long it is"
    room.fill([patch_message(seq, {"bulk": bulk}).text for seq in range(3, 10)])
    assert room.base == 8


async def test_a_client_that_never_reads_is_dropped(
    room: Room, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer_module, "SEND_SECONDS", 0.05)
    client = Client(room)
    client.can_read.clear()
    client.start()
    assert (await asyncio.wait_for(client.viewer.ending, 2)).code == viewer_module.CLOSE_SLOW
    await client.stop()


async def test_a_lost_message_costs_a_snapshot_and_no_wrong_state(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    room.receive(truth.change(n=1))
    await settled()
    truth.change(n=2, peers={"a": {"epoch": 1}})  # its message never comes
    room.receive(truth.change(n=3))
    await settled()
    assert client.kinds == ["snapshot", "patch", "snapshot"]
    assert client.state == truth.state
    room.receive(truth.change(n=4))
    await settled()
    await client.stop()
    assert client.kinds[-1] == "patch"
    assert client.state == truth.state


async def test_messages_in_the_wrong_order_end_in_the_right_state(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    room.receive(truth.change(n=1))
    early, late = truth.change(n=2), truth.change(n=3)
    room.receive(late)
    room.receive(early)
    room.receive(late)
    await settled()
    await client.stop()
    assert client.state == truth.state


async def test_a_snapshot_is_read_once_for_viewers_who_come_together(
    room: Room, truth: Truth
) -> None:
    clients = [Client(room).start() for _ in range(50)]
    await settled()
    assert [client.kinds for client in clients] == [["snapshot"]] * 50
    assert truth.reads == 1
    await asyncio.gather(*(client.stop() for client in clients))


async def test_after_an_interruption_everybody_gets_a_new_snapshot(
    room: Room, truth: Truth
) -> None:
    client = Client(room).start()
    await settled()
    truth.change(n=5)
    room.missed()
    await settled()
    await client.stop()
    assert client.kinds == ["snapshot", "snapshot"]
    assert client.state == truth.state


async def test_the_kept_ring_joins_what_was_heard_since(room: Room) -> None:
    texts = [patch_message(seq, {"n": seq}).text for seq in (1, 2, 4, 5, 6)]
    room.receive(patch_message(6, {"n": 6}))
    room.receive(patch_message(7, {"n": 7}))
    room.fill([*texts, "garbage"])
    assert (room.base, room.last) == (3, 7)
    assert room.can_replay(3, 7)
    assert not room.can_replay(2, 7), "the log has a gap there"
    assert not room.can_replay(3, 8), "the database knows more"
    assert not room.can_replay(9, 7), "nobody can be ahead"


async def test_a_log_of_another_database_is_thrown_away(room: Room, truth: Truth) -> None:
    room.fill([patch_message(seq, {"n": 99}).text for seq in range(500, 510)])
    client = Client(room).start()
    await settled()
    room.receive(truth.change(n=1))
    await settled()
    await client.stop()
    assert client.kinds == ["snapshot", "patch"]
    assert client.state == truth.state


async def test_events_are_sent_once_each(room: Room, truth: Truth) -> None:
    client = Client(room).start()
    await settled()
    room.receive(event_message(1, "bob joined"))
    room.receive(event_message(2, "epoch 1"))
    truth.state["seq"] = 2
    room.receive(truth.change(n=1))
    await settled()
    room.receive(truth.change(n=2))
    await settled()
    await client.stop()
    texts = [frame["event"]["text"] for frame in client.frames if frame["type"] == "run.event"]
    assert texts == ["bob joined", "epoch 1"]
