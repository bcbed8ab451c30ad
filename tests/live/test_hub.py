"""The hub's own tasks: rights are looked at again and messages heard, whatever fails."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from django.db import InterfaceError

from tests.live.rooms import Truth
from web.live import hub as hub_module
from web.live import tasks
from web.live.hub import Hub
from web.live.source import Listener
from web.live.viewer import Line, Viewer


@asynccontextmanager
async def watching(hub: Hub) -> AsyncIterator[Viewer]:
    async def send(text: str) -> None:
        pass

    async with hub.watching("demo", user_id=1, line=Line(send), since=None, known=0) as viewer:
        yield viewer


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(3):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PAUSE_SECONDS", (0.02, 0.08))


@pytest.mark.parametrize("error", [InterfaceError("connection already closed"), KeyError("x")])
async def test_rights_are_looked_at_again_after_any_failure(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    looks: list[str] = []

    async def allowed(slug: str, user_ids: Collection[int | None]) -> set[int | None]:
        looks.append(slug)
        if len(looks) == 1:
            raise error
        return set()

    monkeypatch.setattr(hub_module, "watchers_allowed", allowed)
    monkeypatch.setattr(hub_module, "RECHECK_SECONDS", 0.05)
    async with watching(Hub(Truth().read)) as viewer:
        ending = await asyncio.wait_for(viewer.ending, 3)
    assert ending.reason == "access_ended"


async def test_a_source_that_dies_begins_again_and_everybody_resyncs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Listener] = []
    crash = asyncio.Event()

    async def source(listener: Listener) -> None:
        heard.append(listener)
        listener.connected()
        await (crash.wait() if len(heard) == 1 else asyncio.sleep(60))
        raise ValueError("a message nobody understands")

    monkeypatch.setattr(hub_module, "source_run", source)
    async with watching(Hub(Truth().read)) as viewer:
        await until(lambda: len(heard) == 1)
        generation = viewer.room.generation
        crash.set()
        await until(lambda: len(heard) == 2)
        assert viewer.room.generation == generation + 2, "once when it ended, once when it is back"
    assert any("viewers resync" in record.message for record in caplog.records)


async def test_pauses_between_tries_grow_to_a_bound_and_newcomers_do_not_shorten_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[float] = []

    async def source(listener: Any) -> None:
        listener.disconnected()
        begun.append(asyncio.get_running_loop().time())
        raise ValueError("at once")

    monkeypatch.setattr(hub_module, "source_run", source)
    hub = Hub(Truth().read)
    async with watching(hub):
        while len(begun) < 6:
            async with watching(hub):
                await asyncio.sleep(0.005)
    gaps = [b - a for a, b in pairwise(begun)]
    assert gaps[0] >= 0.015
    assert all(gap >= 0.07 for gap in gaps[2:])
    assert max(gaps) < 0.5
    known = len(begun)
    await asyncio.sleep(0.2)
    assert len(begun) == known, "with nobody here nothing is tried"
