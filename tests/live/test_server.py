"""The real server: a goodbye before it ends, and clients that stop reading."""

import asyncio
import json
import re
import signal
import socket as kernel
import struct
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
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


@pytest.fixture
def impatient(seeded: Site) -> Iterator[Site]:
    seeded.serve("tests.live.impatient:application")
    yield seeded
    seeded.stop()


async def test_clients_that_do_not_read_are_told_why_or_cut_off(
    impatient: Site, redis_server: str
) -> None:
    assert impatient.process is not None
    server = psutil.Process(impatient.process.pid)
    await asyncio.to_thread(endings, impatient)
    before = server.memory_info().rss
    stalled = [stall(impatient.port) for _ in range(8)]
    async with connect(impatient, max_size=None) as socket:
        seq = json.loads(await socket.recv())["seq"]
        await asyncio.sleep(0.5)
        for patch in ({"bulk": "x" * 12_000_000}, {"bulk": ""}, {"bulk": "y"}):
            seq += 1
            await asyncio.to_thread(publish, redis_server, seq, **patch)
            assert json.loads(await asyncio.wait_for(socket.recv(), 9))["seq"] == seq
        assert len(sockets_of(server, impatient.port)) == 9
        full = server.memory_info().rss
        ends = time.monotonic() + 15
        while len(sockets_of(server, impatient.port)) > 1:
            assert time.monotonic() < ends, "their sockets stay"
            await asyncio.sleep(0.2)
        counted = await asyncio.to_thread(endings, impatient)
        assert (counted["slow"], counted["cut"]) == (8, 8)
        assert full - server.memory_info().rss > (full - before) / 2, "so does their memory"
        await asyncio.to_thread(publish, redis_server, seq + 1)
        assert json.loads(await asyncio.wait_for(socket.recv(), 5))["seq"] == seq + 1
    for each in stalled:
        each.close()


async def test_a_client_that_reads_again_hears_that_it_was_too_slow(
    impatient: Site, redis_server: str
) -> None:
    stalled = stall(impatient.port)
    await asyncio.sleep(0.5)
    seq = await asyncio.to_thread(impatient.live_seq)
    for patch in ({"bulk": "x" * 12_000_000}, {"bulk": ""}):
        seq += 1
        await asyncio.to_thread(publish, redis_server, seq, **patch)
        await asyncio.sleep(0.8)
    await asyncio.sleep(1.0)
    tail = await asyncio.to_thread(drain, stalled)
    assert b'"reason":"slow"' in tail
    assert tail.endswith(struct.pack("!BBH", 0x88, 6, 1013) + b"slow")


def stall(port: int) -> kernel.socket:
    """Open a live page that reads nothing."""
    client = kernel.socket()
    client.setsockopt(kernel.SOL_SOCKET, kernel.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(HANDSHAKE.format(port=port).encode())
    return client


def drain(client: kernel.socket) -> bytes:
    """Read until the goodbye or the end; return the last bytes."""
    client.settimeout(10)
    tail = b""
    while not tail.endswith(b"slow") and (data := client.recv(1 << 20)):
        tail = (tail + data)[-200:]
    client.close()
    return tail


def sockets_of(server: psutil.Process, port: int) -> list[Any]:
    return [c for c in server.net_connections("tcp") if c.laddr.port == port and c.raddr]


def endings(site: Site) -> dict[str, float]:
    """Return how often live pages ended, by why, as the metrics say."""
    text = httpx.get(f"http://127.0.0.1:{site.port}/metrics", timeout=20).text
    rows = re.findall(r'^beeyard_websocket_endings_total{reason="(\w+)"} (\S+)$', text, re.M)
    return {reason: float(count) for reason, count in rows}


HANDSHAKE = (
    f"GET /ws/runs/{SLUG}/ HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
)
