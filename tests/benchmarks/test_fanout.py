"""Fan-out of live data: the hub beside Channels' group_send, in the same run.

``BENCH_VIEWERS`` (200), ``BENCH_SECONDS`` (5), ``BENCH_STALLED`` (0 viewers that do not read) and
``BENCH_WAYS`` (``hub,pubsub,core``) change it. Prints a table; from 1,000 viewers on it asserts the
goals too: six times as many deliveries per CPU-second, and no old ones although some do not read.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from tests.benchmarks.plain_fanout import layer_settings
from tests.live.site import ROOT, SLUG, Site
from tests.servers import port_free

pytestmark = [pytest.mark.benchmark, pytest.mark.redis, pytest.mark.timeout(1800)]

VIEWERS = int(os.environ.get("BENCH_VIEWERS", "200"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
STALLED = int(os.environ.get("BENCH_STALLED", "0"))
WAYS = os.environ.get("BENCH_WAYS", "hub,pubsub,core").split(",")
RATES = (1.0, 5.0)
GOALS_FROM = 1000
Results = dict[tuple[str, float], dict[str, Any]]
CLIENTS = Path(__file__).with_name("fanout_clients.py")
FILLER = "x" * 900
HEADER = (
    f"{'way':8}{'Hz':>4}{'frames/s':>10}{'p50 ms':>8}{'p95 ms':>8}{'CPU %':>7}"
    f"{'frames/CPU-s':>14}{'kB/viewer':>11}{'lost':>6}"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[Site]:
    environment = {"BEEYARD_LIVE_SOCKETS_PER_CLIENT": str(VIEWERS + 10)}
    site = Site(tmp_path_factory.mktemp("fanout"), redis_server, port_free(), **environment)
    site.seed()
    yield site
    site.stop()


def test_fan_out(site: Site, redis_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{VIEWERS} viewers ({STALLED} do not read), 1 kB, {SECONDS:.0f} s", HEADER]
    results: Results = {}
    for way in WAYS:
        for rate in RATES:
            result = results[way, rate] = measure(site, redis_server, way, rate)
            lines.append(row(way, rate, result))
            assert result["frames"] > 0
    with capsys.disabled():
        print("\n" + "\n".join(lines))  # noqa: T201
    if VIEWERS >= GOALS_FROM:
        for rate in RATES:
            goals_check(results, rate)


def goals_check(results: Results, rate: float) -> None:
    per_cpu = {way: r["frames"] / r["cpu"] for (way, hz), r in results.items() if hz == rate}
    if "hub" in per_cpu and rate == RATES[0]:
        assert results["hub", rate]["p95"] < 0.25
    if {"hub", "pubsub"} <= per_cpu.keys():
        assert per_cpu["hub"] > 6 * per_cpu["pubsub"]


def measure(site: Site, url: str, way: str, rate: float) -> dict[str, Any]:
    if way == "hub":
        server = psutil.Process(site.serve())
    else:
        site.environment["BENCH_LAYER"] = way
        server = psutil.Process(site.serve("tests.benchmarks.plain_fanout:application"))
    time.sleep(1)
    empty = server.memory_info().rss
    path = f"/ws/runs/{SLUG}/"
    clients = subprocess.Popen(
        [sys.executable, str(CLIENTS), str(site.port), path, str(VIEWERS), str(STALLED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert clients.stdin is not None
    assert clients.stdout is not None
    assert clients.stdout.readline() == "ready\n", site.log.read_text()[-2000:]
    before, began = sum(server.cpu_times()[:2]), time.monotonic()
    send = hub_sender(url, site.live_seq() + 1) if way == "hub" else group_sender(url, way)
    asyncio.run(publish(send, rate))
    cpu, seconds = sum(server.cpu_times()[:2]) - before, time.monotonic() - began
    memory = (server.memory_info().rss - empty) / VIEWERS / 1000
    output, _ = clients.communicate("stop\n", timeout=120)
    site.stop()
    return json.loads(output) | {"cpu": cpu, "seconds": seconds, "memory": memory}


async def publish(send: Any, rate: float) -> None:
    """Publish numbered 1 kB messages for SECONDS, evenly."""
    began = time.monotonic()
    for number in range(int(SECONDS * rate)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        await send(number)


def hub_sender(url: str, first: int) -> Any:
    client = redis.Redis.from_url(url)

    async def send(number: int) -> None:
        body = {"n": number, "filler": FILLER, "t": time.time()}
        message = {"type": "run.patch", "seq": first + number, "as_of": None, "patch": body}
        client.publish(f"db0:live:{SLUG}", json.dumps(message))

    return send


def group_sender(url: str, way: str) -> Any:
    from channels.layers import ChannelLayerManager
    from django.test import override_settings

    with override_settings(CHANNEL_LAYERS=layer_settings(way, url)):
        layer = ChannelLayerManager()["default"]

    async def send(number: int) -> None:
        body = {"type": "run.patch", "n": number, "filler": FILLER, "t": time.time()}
        await layer.group_send("demo", {"type": "run.update", "body": body})

    return send


def row(way: str, rate: float, result: dict[str, Any]) -> str:
    per_second = result["frames"] / result["seconds"]
    per_cpu = result["frames"] / max(result["cpu"], 0.01)
    return (
        f"{way:8}{rate:4.0f}{per_second:10.0f}{result['p50'] * 1000:8.0f}"
        f"{result['p95'] * 1000:8.0f}{100 * result['cpu'] / result['seconds']:7.1f}"
        f"{per_cpu:14.0f}{result['memory']:11.0f}{result['lost']:6}"
    )
