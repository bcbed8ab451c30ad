"""The same values against PostgreSQL, whose columns refuse what SQLite's take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("test_values.py")


@pytest.mark.postgres
def test_no_value_is_a_5xx_on_postgresql(postgres_url: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FILE)],
        env=os.environ | {"TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:]
