"""With a real PostgreSQL: the long history's tests once more, on that database."""

import os
import subprocess
import sys

import pytest


@pytest.mark.postgres
def test_a_million_points_and_the_replay_are_read_as_well_from_postgresql(
    postgres_url: str,
) -> None:
    environment = os.environ | {"TEST_DATABASE_URL": postgres_url}
    files = ("test_long_history.py", "test_series.py", "test_moments.py", "test_timings.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "--create-db", *(f"tests/monitoring/{name}" for name in files)],
        env=environment, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
