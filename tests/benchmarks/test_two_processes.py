"""Two site processes behind one port share the viewers; beside them one process with all of them.

``BENCH_VIEWERS`` (200) and ``BENCH_SECONDS`` (5) change it. Prints a table; asserts that every
process serves viewers and that none of them is lost. Frames are fewer than messages: what comes
faster than a viewer is told things is put together.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.benchmarks.test_fanout import CLIENTS, SECONDS, VIEWERS, hub_sender, publish
from tests.live.site import ROOT, SLUG, Site
from tests.servers import port_free

pytestmark = [pytest.mark.benchmark, pytest.mark.redis, pytest.mark.timeout(1800)]

RATE = 5.0
HEADER = f"{'processes':>9}{'frames/s':>10}{'p50 ms':>8}{'p95 ms':>8}  viewers and CPU % of each"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[Site]:
    environment = {"BEEYARD_LIVE_SOCKETS_PER_CLIENT": str(VIEWERS + 10)}
    site = Site(tmp_path_factory.mktemp("two"), redis_server, port_free(), **environment)
    site.seed()
    yield site
    site.stop()


def test_two_processes_behind_one_port_share_the_viewers(
    site: Site, redis_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{VIEWERS} viewers, 1 kB at {RATE:.0f} Hz, {SECONDS:.0f} s", HEADER]
    for processes in (1, 2):
        result = measure(site, redis_server, processes)
        shares = ", ".join(f"{n} at {100 * cpu:.0f} %" for n, cpu in result["shares"])
        lines.append(
            f"{processes:9}{result['frames'] / SECONDS:10.0f}{1000 * result['p50']:8.0f}"
            f"{1000 * result['p95']:8.0f}  {shares}"
        )
        assert len(result["shares"]) == processes, "each serves somebody"
        assert sum(n for n, _ in result["shares"]) == VIEWERS
        assert result["lost"] == 0
    with capsys.disabled():
        print("\n" + "\n".join(lines))  # noqa: T201


def measure(site: Site, url: str, processes: int) -> dict[str, Any]:
    """Return the clients' figures, and viewers and CPU of each process."""
    leader = psutil.Process(site.serve(processes=processes))
    time.sleep(6)  # children of uvicorn load the site after the port is open
    clients = subprocess.Popen(
        [sys.executable, str(CLIENTS), str(site.port), f"/ws/runs/{SLUG}/", str(VIEWERS), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert clients.stdin is not None
    assert clients.stdout is not None
    assert clients.stdout.readline() == "ready\n", site.log.read_text()[-2000:]
    family = [leader, *leader.children(recursive=True)]
    viewers = {process: _viewers(process, site.port) for process in family}
    serving = [process for process, number in viewers.items() if number]
    before, began = {p: sum(p.cpu_times()[:2]) for p in serving}, time.monotonic()
    asyncio.run(publish(hub_sender(url, site.live_seq() + 1), RATE))
    seconds = time.monotonic() - began
    shares = [(viewers[p], (sum(p.cpu_times()[:2]) - before[p]) / seconds) for p in serving]
    output, _ = clients.communicate("stop\n", timeout=120)
    site.stop()
    return json.loads(output) | {"shares": shares}


def _viewers(process: psutil.Process, port: int) -> int:
    found = process.net_connections(kind="tcp")
    return sum(
        c.status == psutil.CONN_ESTABLISHED and bool(c.laddr) and c.laddr.port == port
        for c in found
    )
