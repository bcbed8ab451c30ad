"""With a real Redis: pushing, replaying, and Redis killed under open sockets."""

import asyncio
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.factories_runs import Swarm, run_make, snapshot_take, swarm_make
from tests.live.sockets import in_database, socket_open
from tests.servers import port_free, redis_start
from web.accounts.models import User
from web.accounts.services import user_ban
from web.core import redis as core_redis
from web.core.events import (
    RING_BYTES,
    RING_SECONDS,
    RING_SIZE,
    STATE_SECONDS,
    access_changed_publish,
    event_publish,
    live_ring,
    live_ring_drop,
    live_ring_since,
    live_state_read,
    live_state_write,
)
from web.core.redis import redis_client
from web.live import source
from web.monitoring.selectors import live_state
from web.runs.models import Run
from web.runs.services import run_bar_add, run_member_add

pytestmark = pytest.mark.redis


@pytest.fixture
def live_redis(settings: Any, redis_server: str) -> Iterator[str]:
    """Live data through the shared test server."""
    yield from _use(settings, redis_server)


def _use(settings: Any, url: str) -> Iterator[str]:
    settings.LIVE_BACKEND, settings.REDIS_URL = "redis", url
    yield url
    redis_client().close()
    core_redis._client.cache_clear()


class Killable:
    """A Redis of one test, that can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.password = folder, port_free(), secrets.token_hex(8)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = redis_start(self.folder, self.port, self.password)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=10)
            self.process = None


@pytest.fixture
def own_redis(settings: Any, tmp_path: Path) -> Iterator[Killable]:
    server = Killable(tmp_path)
    server.start()
    using = _use(settings, server.url)
    next(using)
    yield server
    server.kill()
    for _ in using:
        pass


def patch(seq: int) -> dict[str, Any]:
    return {"type": "run.patch", "seq": seq, "as_of": None, "patch": {"seq": seq}}


def test_state_and_ring_are_kept_and_the_ring_is_bounded(live_redis: str) -> None:
    slug = f"run-{secrets.token_hex(4)}"
    assert live_state_read(slug) is None
    assert live_ring_since(slug, 0) == []
    for seq in range(1, 3 * RING_SIZE):
        event_publish(slug, patch(seq), state={"seq": seq})
    assert live_state_read(slug) == {"seq": 3 * RING_SIZE - 1}
    assert 0 < int(str(redis_client().ttl(f"live:{slug}:state"))) <= STATE_SECONDS
    live_state_write(slug, {"seq": 0})
    assert live_state_read(slug) == {"seq": 0}
    assert 0 < int(str(redis_client().ttl(f"live:{slug}:state"))) <= STATE_SECONDS
    live_ring_drop(slug)
    assert live_ring(slug) == []
    assert live_state_read(slug) == {"seq": 0}
    for seq in range(1, 3 * RING_SIZE):
        event_publish(slug, patch(seq))
    assert len(live_ring(slug)) == RING_SIZE
    assert redis_client().xlen(f"live:{slug}:ring") < 2 * RING_SIZE
    last = 3 * RING_SIZE - 1
    assert live_ring_since(slug, last - 2) == [patch(last - 1), patch(last)]
    assert live_ring_since(slug, last) == []
    assert live_ring_since(slug, 1) is None, "too old"


def test_large_patches_are_kept_up_to_a_number_of_bytes(live_redis: str) -> None:
    slug = f"run-{secrets.token_hex(4)}"
    for seq in range(1, 31):
        event_publish(slug, {**patch(seq), "bulk": "x" * 1_300_000})
    ring = live_ring(slug)
    assert len(ring) == 3
    assert sum(map(len, ring)) <= RING_BYTES
    assert int(str(redis_client().memory_usage(f"live:{slug}:ring", samples=0))) < 2 * RING_BYTES
    assert [message["seq"] for message in live_ring_since(slug, 27) or []] == [28, 29, 30]
    assert live_ring_since(slug, 26) is None, "whoever misses more gets a whole state"
    event_publish(slug, {**patch(31), "bulk": "x" * (RING_BYTES + 1)})
    assert len(live_ring(slug)) == 1, "the newest stays, lest a gap looks like no news"
    event_publish(slug, patch(32))
    assert live_ring_since(slug, 31) == [patch(32)]
    assert 0 < int(str(redis_client().ttl(f"live:{slug}:ring"))) <= RING_SECONDS


@pytest.mark.django_db(transaction=True)
async def test_pages_live_on_a_real_redis(
    live_redis: str, alice: User, charlie: User, transactional_db: None
) -> None:
    slug = f"run-{secrets.token_hex(4)}"
    swarm: Swarm = await in_database(lambda: swarm_make(run_make(alice, slug)))
    async with socket_open(slug) as socket:
        before = (await socket.next())["state"]
        await in_database(snapshot_take, swarm)
        assert (await socket.settle())[-1] == "run.patch"
        fresh = await in_database(live_state, swarm.run)
        assert socket.state == fresh
    async with socket_open(slug, since=before["seq"]) as late:
        late.state = before
        assert "run.snapshot" not in await late.settle()
        assert late.state == fresh
    async with socket_open(slug, user=charlie) as stranger:
        await stranger.next()
        await in_database(Run.objects.filter(pk=swarm.run.pk).update, is_public=False)
        await in_database(access_changed_publish)
        assert await stranger.closed() == 4403


@pytest.mark.django_db(transaction=True)
async def test_a_ban_and_a_bar_end_streams_of_a_private_run_at_once(
    live_redis: str, alice: User, bob: User, charlie: User, transactional_db: None
) -> None:
    slug = f"run-{secrets.token_hex(4)}"
    run = await in_database(lambda: run_make(alice, slug, is_public=False))
    for user in (bob, charlie):
        await in_database(run_member_add, alice, run, user, "volunteer")
    async with (
        socket_open(slug, user=alice) as alices,
        socket_open(slug, user=bob) as bobs,
        socket_open(slug, user=charlie) as charlies,
    ):
        for socket in (alices, bobs, charlies):
            assert (await socket.next())["type"] == "run.snapshot"
        began = time.monotonic()
        await in_database(user_ban, alice, bob, "spam")
        assert await bobs.closed() == 4403
        await in_database(run_bar_add, alice, run, charlie, "noise")
        assert await charlies.closed() == 4403
        assert time.monotonic() - began < 3
        assert bobs.frames[-1]["reason"] == charlies.frames[-1]["reason"] == "access_ended"
        assert await alices.settle() == [], "and she stays"
    async with socket_open(slug, user=charlie) as again:
        assert await again.closed() == 4403


@pytest.mark.django_db(transaction=True)
async def test_pages_outlive_a_redis_that_is_killed_and_started_again(
    own_redis: Killable, alice: User, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_BACKOFF_SECONDS", (0.1, 0.3))
    swarm: Swarm = await in_database(lambda: swarm_make(run_make(alice)))
    async with socket_open() as socket:
        await socket.next()
        own_redis.kill()
        began = time.monotonic()
        await in_database(snapshot_take, swarm)
        assert time.monotonic() - began < 3, "ingest goes on"
        assert set(await socket.settle()) == {"run.snapshot"}, "now from the database"
        assert socket.state == await in_database(live_state, swarm.run)
        async with socket_open(since=1) as newcomer:
            assert (await newcomer.next(5))["state"] == socket.state
            await asyncio.to_thread(own_redis.start)
            await asyncio.sleep(1.0)
            await in_database(snapshot_take, swarm)
            for each in (socket, newcomer):
                assert (await each.settle())[-1] == "run.patch"
                assert each.state == await in_database(live_state, swarm.run)


def test_writers_do_not_mind_that_redis_is_away(
    own_redis: Killable, caplog: pytest.LogCaptureFixture
) -> None:
    own_redis.kill()
    for seq in range(3):
        event_publish("demo", patch(seq), state={"seq": seq})
        live_state_write("demo", {})
        access_changed_publish()
    assert live_state_read("demo") is None
    assert live_ring_since("demo", 0) == []
    assert [record.message for record in caplog.records if "away" in record.message] != []
    assert len(caplog.records) == 1, "said once"
    own_redis.start()
    event_publish("demo", patch(3), state={"seq": 3})
    assert live_state_read("demo") == {"seq": 3}
    assert "back" in caplog.records[-1].message
