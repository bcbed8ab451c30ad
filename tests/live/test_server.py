"""The real server: a goodbye before it ends, and clients that stop reading."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import websockets

from tests.live.site import SLUG, Site
from tests.servers import port_free

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Site:
    site = Site(tmp_path_factory.mktemp("site"), redis_server, port_free())
    site.seed()
    return site


@pytest.fixture
def site(seeded: Site) -> Iterator[Site]:
    seeded.serve()
    yield seeded
    seeded.stop()


def publish(url: str, seq: int, **patch: Any) -> None:
    message = {"type": "run.patch", "seq": seq, "as_of": None, "patch": {"seq": seq, **patch}}
    with redis.Redis.from_url(url) as client:
        client.publish(f"db0:live:{SLUG}", json.dumps(message))


def connect(site: Site, **options: Any) -> Any:
    return websockets.connect(
        f"ws://127.0.0.1:{site.port}/ws/runs/{SLUG}/", compression=None, **options
    )


async def test_a_server_that_is_stopped_says_goodbye_first(site: Site) -> None:
    async with connect(site) as first, connect(site) as second:
        for socket in (first, second):
            assert json.loads(await socket.recv())["type"] == "run.snapshot"
        began = time.monotonic()
        stopping = asyncio.create_task(asyncio.to_thread(site.stop, signal.SIGTERM))
        for socket in (first, second):
            bye = json.loads(await asyncio.wait_for(socket.recv(), 5))
            assert (bye["type"], bye["reason"]) == ("run.bye", "restart")
            assert bye["retry_after"] > 0
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 5)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        code = await stopping
        assert code is not None, "it had to be killed"
        assert time.monotonic() - began < 10


async def test_clients_that_do_not_read_delay_nobody(site: Site, redis_server: str) -> None:
    bulk = "x" * 600_000  # more than the kernel keeps for a socket after a few patches
    stalled = [await asyncio.open_connection("127.0.0.1", site.port, limit=1) for _ in range(10)]
    for _, writer in stalled:
        writer.write(HANDSHAKE.format(port=site.port).encode())
        writer.transport.pause_reading()  # type: ignore[attr-defined]
    async with connect(site, max_size=None) as socket:
        seq = json.loads(await socket.recv())["seq"]
        await asyncio.sleep(0.5)
        slowest = 0.0
        for _ in range(8):
            seq += 1
            began = time.monotonic()
            await asyncio.to_thread(publish, redis_server, seq, bulk=bulk)
            frame = json.loads(await asyncio.wait_for(socket.recv(), 5))
            assert frame["seq"] == seq
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2.0, "half a second between patches, and no waiting for the others"
    for _, writer in stalled:
        writer.transport.abort()


HANDSHAKE = (
    f"GET /ws/runs/{SLUG}/ HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
)
