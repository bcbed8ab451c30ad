"""Who may import whom."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BLOCKED_TORCH = """
import sys
for name in ("torch", "hivemind", "transformers", "tokenizers", "datasets"):
    sys.modules[name] = None
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import web.project.asgi
import web.project.celery
"""

LIGHT_PROTOCOL = """
import sys
import training.protocol.api, training.protocol.envelope, training.protocol.keys
heavy = {"torch", "hivemind", "numpy", "django", "transformers"} & set(sys.modules)
assert not heavy, heavy
"""

LIGHT_CLI = """
import sys
from training.cli import main
try:
    main(["version"])
except SystemExit as stop:
    assert not stop.code
heavy = {"torch", "hivemind", "transformers", "datasets"} & set(sys.modules)
assert not heavy, heavy
"""


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_import_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    "code", [BLOCKED_TORCH, LIGHT_PROTOCOL, LIGHT_CLI], ids=["site", "protocol", "cli"]
)
def test_what_must_stay_light_starts_without_the_heavy_packages(code: str) -> None:
    result = run(code)
    assert result.returncode == 0, result.stderr
