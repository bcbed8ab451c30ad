"""A million points in one request, and again finer where one zooms in."""

import json
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.factories_runs import run_make
from training.protocol.names import API_PREFIX
from web.accounts.models import User
from web.monitoring.models import MetricPoint
from web.monitoring.resolution import points_between, stretches
from web.monitoring.retention import points_rollup
from web.monitoring.selectors import run_series
from web.monitoring.series import EPOCH_METRICS, MAX_BYTES, TIME_METRICS, points_that_fit
from web.runs.models import Run

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, tzinfo=UTC)
ROWS = 1_000_000
SPIKES = {123_456: 999.0, 777_777: 0.001}
"""Losses of single rows: whoever averages or picks every n-th row loses them."""
_NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT %s)",
    "postgresql": "WITH n AS (SELECT generate_series(0, %s - 1) AS i)",
}
_AT = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%S', 1772323200 + i * 2, 'unixepoch')",
    "postgresql": "to_timestamp(1772323200 + i * 2)",
}


def history_insert(run: Run, rows: int) -> None:
    """Write a point every two seconds, with digits as real measurements have them."""
    numbers, at = _NUMBERS[connection.vendor], _AT[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO monitoring_metricpoint (run_id, resolution, at, epoch, loss,"  # noqa: S608
            " samples_per_second, num_peers, samples_total)"
            f" {numbers} SELECT %s, 0, {at}, i / 10,"
            " 8.0 - i * 0.0000031415926, 1234.567 + (i %% 97) / 7.0, 2 + i %% 3, i * 1000 FROM n",
            [rows, run.pk],
        )
    for i, loss in SPIKES.items():
        MetricPoint.objects.filter(run=run, samples_total=i * 1000).update(loss=loss)


def asked(client: Client, **query: Any) -> tuple[dict[str, list[Any]], int]:
    response = client.get(f"{API_PREFIX}/runs/demo/series/", query)
    assert response.status_code == 200
    return json.loads(response.content), len(response.content)


def test_a_million_points_are_one_small_answer_with_every_extreme(
    client: Client, alice: User
) -> None:
    history_insert(run_make(alice), ROWS)
    assert MetricPoint.objects.count() == ROWS
    tracemalloc.start()
    began = time.perf_counter()
    found, size = asked(client, metrics=",".join(TIME_METRICS), points=5000)
    seconds = time.perf_counter() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size <= 60_000
    assert 800 < len(found["t"]) <= 5000, "as fine as the bound allows"
    assert (max(found["loss"]), min(found["loss"])) == (999, 0.001)
    assert max(found["num_peers"]) == 4
    assert found["t"][0] == START.timestamp()
    assert found["t"][-1] == (START + timedelta(seconds=2 * (ROWS - 1))).timestamp()
    assert peak < 20_000_000, "no million rows in memory"
    assert seconds < 15, "two seconds is the aim; this machine may be busy"

    near = (START + timedelta(seconds=2 * 123_456)).timestamp()
    edges = {"from": START + timedelta(seconds=2 * 123_000), "to": START + timedelta(hours=69)}
    fine, size = asked(client, **{name: at.isoformat() for name, at in edges.items()})
    assert size <= 60_000
    (spike,) = (t for t, loss in zip(fine["t"], fine["loss"], strict=True) if loss == 999)
    coarse = min(abs(t - near) for t in found["t"])
    assert abs(spike - near) <= 10 < found["t"][2] - found["t"][1] + coarse


@pytest.mark.parametrize("metrics", [TIME_METRICS, EPOCH_METRICS, ("loss",)])
def test_the_widest_numbers_stay_below_the_bound(metrics: tuple[str, ...]) -> None:
    widest = {"samples_total": 2**53 - 1, "num_peers": 10**5, "epoch": 2**31 - 1, "samples": 10**9}
    row = [1772323200.12, *(widest.get(name, 1234.56) for name in metrics)]
    text = json.dumps([row] * points_that_fit(metrics), separators=(",", ":"))
    assert len(text) <= MAX_BYTES * 1.05


def test_a_thinned_history_is_read_instead_of_a_raw_one_where_nobody_can_tell(alice: User) -> None:
    run = run_make(alice)
    history_insert(run, 10_000)
    MetricPoint.objects.filter(samples_total=3333 * 1000).update(loss=55.0)
    points_rollup(START + timedelta(days=1))
    coarse = points_between(run, None, None, 100)
    assert coarse.count() < 5000, "a few rows of each minute"
    assert max(run_series(run, ["loss"], points=100)["loss"]) == 55.0
    assert points_between(run, None, None, 5000).count() == 10_000
    hour = points_between(run, START, START + timedelta(hours=1), 1000)
    assert hour.count() == 1801, "zoomed in, the raw rows answer"


days = st.integers(0, 400 * 24)


@given(st.dictionaries(st.sampled_from([0, 60, 3600]), st.tuples(days, days), min_size=1),
       st.floats(0, 1e6), days)  # fmt: skip
def test_no_stretch_of_time_is_told_twice_or_left_out(
    hours: dict[int, tuple[int, int]], width: float, at: int
) -> None:
    """Whatever was thinned and forgotten, an instant that is kept is read in one resolution."""
    # Thinned rows are copies of finer ones, and the finest are forgotten first.
    firsts, lasts = (sorted(ends) for ends in zip(*map(sorted, hours.values()), strict=True))
    kinds = sorted(hours, reverse=True)
    kept = {
        kind: (START + timedelta(hours=first), START + timedelta(hours=max(first, last)))
        for kind, first, last in zip(kinds, firsts, lasts, strict=True)
    }
    instant = START + timedelta(hours=at)
    having = {kind for kind, (first, last) in kept.items() if first <= instant <= last}
    reading = [
        kind
        for kind, begins, ends in stretches(kept, width)
        if (begins is None or begins <= instant) and (ends is None or instant < ends)
        and kind in having
    ]  # fmt: skip
    assert len(reading) <= 1
    assert bool(reading) == bool(having)
