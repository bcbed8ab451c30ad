"""A long and large run in PostgreSQL, and what its pages cost; prints one JSON document.

Run by test_scale.py in a process of its own, with ``TEST_DATABASE_URL``.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import Device, User
from web.contributions.models import ContributionTotal
from web.monitoring import series_kept
from web.monitoring.models import EpochRecord, Peer, RunEvent, RunSwarm
from web.runs.models import Run

POINTS = """
INSERT INTO monitoring_metricpoint
  (run_id, resolution, at, epoch, loss, samples_per_second, num_peers, samples_total)
SELECT %s, %s, %s - n * %s * interval '1 second', (%s - n) / 100, 2 + 6.0 * n / %s,
  1000 + 100 * random(), 100 + n %% 50, (%s - n)::bigint * 4096
FROM generate_series(1, %s) AS n
"""
CHUNK = 2000


def people_make(count: int) -> list[Device]:
    """Return as many machines, each of its own volunteer."""
    people = [User(username=f"bee-{n}", email=f"bee-{n}@example.org") for n in range(count)]
    people = User.objects.bulk_create(people, CHUNK)
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}
    devices = [
        Device(user=user, name="laptop", kid=f"kid-{n}", jwk=jwk) for n, user in enumerate(people)
    ]
    return Device.objects.bulk_create(devices, CHUNK)


def peers_make(run: Run, devices: list[Device]) -> None:
    now = timezone.now()
    rows = [
        Peer(
            run=run, device=device, peer_id=f"Qm{n:044d}", key_thumbprint=f"{n:064x}",
            swarm_public_key="", role="trainer", hardware={"device": "cpu"}, joined_at=now,
            heartbeat_at=now, seen_at=now,
        )
        for n, device in enumerate(devices)
    ]  # fmt: skip
    Peer.objects.bulk_create(rows, CHUNK)
    totals = [
        ContributionTotal(run=run, user=device.user, samples=n, last_at=now)
        for n, device in enumerate(devices)
    ]
    ContributionTotal.objects.bulk_create(totals, CHUNK)


def history_make(run: Run, points: int) -> None:
    """Make what ages as the site ages it: hours of two years and minutes of a month, four rows
    a slot, and the rest raw, a row every two seconds: pruning is weeks behind. Epochs; events."""
    now = timezone.now()
    hours, minutes = min(2 * 365 * 24 * 4, points // 4), min(30 * 24 * 60 * 4, points // 4)
    with connection.cursor() as cursor:
        for resolution, step, count in (
            (3600, 900, hours),
            (60, 15, minutes),
            (0, 2, points - hours - minutes),
        ):
            numbers = (count, count, count, count)
            cursor.execute(POINTS, (run.pk, resolution, now, step, *numbers))
    epochs = [
        EpochRecord(
            run=run, lineage=1, epoch=n, finished_at=now, seconds=30, samples=4096, num_peers=100,
            loss=3.0,
        )
        for n in range(20_000)
    ]  # fmt: skip
    EpochRecord.objects.bulk_create(epochs, CHUNK)
    events = [
        RunEvent(run=run, seq=1_000_000 + n, at=now, kind="epoch.finished", text=f"Epoch {n}")
        for n in range(20_000)
    ]
    RunEvent.objects.bulk_create(events, CHUNK)
    Run.objects.filter(pk=run.pk).update(live_seq=2_000_000)


def live_peers_set(run: Run, count: int) -> None:
    """Have as many peers in the live state as the last snapshot's one, copied."""
    swarm = RunSwarm.objects.get(run=run)
    (peer,) = [p for p in swarm.live["peers"].values() if p["role"] == "trainer"][:1]
    peers = {f"{n:012x}": peer | {"name": f"bee-{n}"} for n in range(count)}
    swarm.live = swarm.live | {"peers": peers, "num_peers": count}
    swarm.received_at = timezone.now()
    swarm.save()


def news_come(run: Run) -> None:
    """As a snapshot would have it: what this process keeps of the run is old."""
    RunSwarm.objects.filter(run=run).update(received_at=timezone.now())
    series_kept._kept.clear()


def page_measure(
    path: str, rounds: int, news: Callable[[], None] = lambda: None, viewer: User | None = None
) -> dict[str, Any]:
    client = Client(headers={"host": "127.0.0.1"})
    if viewer is not None:
        client.force_login(viewer)
    client.get(path)  # templates are compiled once per process
    news()
    with CaptureQueriesContext(
        connection,
    ) as captured:
        answer = client.get(path)
    queries = captured.captured_queries  # the next request empties the log
    assert answer.status_code == 200, answer.status_code
    times, own = [], []
    for _ in range(rounds):
        news()
        began, began_own = time.perf_counter(), time.process_time()
        client.get(path)
        times.append(1000 * (time.perf_counter() - began))
        own.append(1000 * (time.process_time() - began_own))
    return {
        "path": path,
        "queries": len(queries),
        "median_ms": statistics.median(times),
        "worst_ms": max(times),
        "cpu_ms": statistics.median(own),
        "sql_ms": 1000 * sum(float(query["time"]) for query in queries),
        "kb": len(answer.content) / 1000,
        "heaviest": [
            query["sql"] for query in sorted(queries, key=lambda q: -float(q["time"]))[:3]
        ],
    }


def explain(sql: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, TIMING OFF) " + sql.replace("%", "%%"), [])
        return [row[0] for row in cursor.fetchall()]


def main(known: int, points: int, rounds: int) -> None:
    """Make it, measure it, print it."""
    call_command("migrate", verbosity=0)
    alice = user_make("alice", is_staff=True)
    run = run_make(alice)
    snapshot_take(swarm_make(run, 1))
    peers_make(run, people_make(known))
    history_make(run, points)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    tables = []
    for live in (200, known):
        live_peers_set(run, live)
        for path in ("/runs/demo/", "/runs/demo/?range=24h", "/api/v1/runs/demo/state/"):
            tables.append({"live": live} | page_measure(path, rounds))
        more: dict[str, dict[str, Any]] = {
            "signed in": {"viewer": alice},
            "after news": {"news": lambda: news_come(run)},
        }
        for words, options in more.items():
            row = page_measure("/runs/demo/", rounds, **options)
            tables.append({"live": live} | row | {"path": f"/runs/demo/ {words}"})
    plans = [{"sql": sql, "plan": explain(sql)} for sql in tables[0]["heaviest"]]
    sys.stdout.write(json.dumps({"pages": tables, "plans": plans}) + "\n")
