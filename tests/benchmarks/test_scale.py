"""What the page of a run costs with 10,000 peers and a million points in PostgreSQL.

``BENCH_PEERS`` (10000), ``BENCH_POINTS`` (1000000) and ``BENCH_ROUNDS`` (15) change it. Prints a
table and the plans of the three heaviest queries; asserts the number of queries, not times.
``CPU ms`` is the site's own, without the database: it hardly depends on what else runs.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.postgres, pytest.mark.timeout(1800)]

PEERS = os.environ.get("BENCH_PEERS", "10000")
POINTS = os.environ.get("BENCH_POINTS", "1000000")
ROUNDS = os.environ.get("BENCH_ROUNDS", "15")
MAX_QUERIES = 12
PROGRAM = "import django; django.setup(); from tests.benchmarks.scale_site import main; "
ROOT = Path(__file__).parents[2]
HEADER = (
    f"{'live':>7}{'queries':>9}{'median ms':>11}{'worst ms':>10}{'CPU ms':>8}{'SQL ms':>8}{'kB':>7}"
    "  page"
)


def test_the_run_page_at_scale(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}main({PEERS}, {POINTS}, {ROUNDS})"],
        cwd=ROOT,
        env=os.environ
        | {"TEST_DATABASE_URL": postgres_url, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    answer = json.loads(result.stdout.splitlines()[-1])
    lines = [f"{PEERS} peers, {POINTS} points, {ROUNDS} rounds", HEADER]
    for row in answer["pages"]:
        lines.append(
            f"{row['live']:7}{row['queries']:9}{row['median_ms']:11.0f}{row['worst_ms']:10.0f}"
            f"{row['cpu_ms']:8.0f}{row['sql_ms']:8.0f}{row['kb']:7.0f}  {row['path']}"
        )
    for plan in answer["plans"]:
        lines += ["", plan["sql"][:600], *(f"    {line}" for line in plan["plan"])]
    with capsys.disabled():
        print("\n" + "\n".join(lines))  # noqa: T201
    assert all(row["queries"] <= MAX_QUERIES for row in answer["pages"])
