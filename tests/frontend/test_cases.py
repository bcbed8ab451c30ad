"""The server writes numbers and draws the comb as the browser does: one table for both."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from web.core.templatetags import ui
from web.pages.comb import NUM_CELLS, cell_slots, comb, epoch_shares

HERE = Path(__file__).parent
CASES: dict[str, Any] = json.loads((HERE / "cases.json").read_text())
FORMATS = ("number", "short", "loss", "percent", "size", "seconds", "evidence")


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_written_as_the_table_says(name: str) -> None:
    written = getattr(ui, name)
    assert [[value, written(value)] for value, _ in CASES[name]] == CASES[name]


@pytest.mark.parametrize("case", CASES["comb"])
def test_the_comb_gives_each_peer_its_cells(case: dict[str, Any]) -> None:
    shares = epoch_shares(case["state"])
    assert [[s.key, s.name, s.samples, s.slot] for s in shares] == case["shares"]
    slots = cell_slots(shares, case["state"]["target_batch_size"])
    assert [[slot, len(list(run))] for slot, run in itertools.groupby(slots)] == case["runs"]
    assert len(comb(case["state"]).cells) == NUM_CELLS


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_scripts_pass_their_own_tests() -> None:
    done = subprocess.run(
        ["node", "--test", *map(str, sorted(HERE.glob("*.test.mjs")))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
