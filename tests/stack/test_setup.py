"""scripts/setup.sh: one sentence for a machine that does not fit, no work when nothing changed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "cat", "dirname", "env", "grep", "sha256sum")
LISTS = ("train.txt", "server.txt", "constraints.txt")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout with the script and the lists only, and a PATH without any Python."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "requirements").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    for name in (*LISTS, "dev.txt"):
        shutil.copy(ROOT / "requirements" / name, tmp_path / "requirements")
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


def setup(copy: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "scripts/setup.sh", "run"],
        cwd=copy,
        env={"PATH": str(copy / "bin"), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_a_python_the_remedy_is_one_sentence(copy: Path) -> None:
    result = setup(copy)
    assert result.returncode == 1
    assert result.stderr.startswith("Cannot install: Python 3.11, 3.12 or 3.13 is needed")
    assert len(result.stderr.splitlines()) == 1


def test_a_python_that_is_too_old_is_not_used(copy: Path) -> None:
    program(copy / "bin" / "python3", "exit 1")  # as the check of the version ends there
    result = setup(copy)
    assert result.returncode == 1
    assert "3.11" in result.stderr
    assert not (copy / ".venv").exists()


def test_a_python_without_venv_is_named(copy: Path) -> None:
    program(copy / "bin" / "python3", '[[ "$2" == *ensurepip* ]] && exit 1; exit 0')
    result = setup(copy)
    assert result.returncode == 1
    assert "python3-venv" in result.stderr


def test_an_environment_of_another_python_is_named(copy: Path) -> None:
    program(copy / ".venv" / "bin" / "python", "exit 1")
    result = setup(copy)
    assert result.returncode == 1
    assert "remove the folder .venv" in result.stderr


def test_nothing_is_installed_again_until_a_list_changes(copy: Path) -> None:
    called = copy / "called"
    program(copy / ".venv" / "bin" / "python", f'[ "$1" = -c ] || echo "$@" >> {called}')
    assert setup(copy).returncode == 0
    first = called.read_text()
    assert "torch==" in first.splitlines()[0], "torch comes first, by exact version"
    assert setup(copy).returncode == 0
    assert called.read_text() == first

    with (copy / "requirements" / "server.txt").open("a") as file:
        file.write("another==1\n")
    assert setup(copy).returncode == 0
    assert called.read_text() != first


def test_a_failed_installation_is_tried_again(copy: Path) -> None:
    program(copy / ".venv" / "bin" / "python", '[ "$1" = -c ]')
    assert setup(copy).returncode == 1
    assert not list((copy / ".venv").glob(".installed*"))


def test_the_lists_name_no_local_path_and_pin_every_package() -> None:
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line and "/" not in line for line in pins)
    assert os.access(ROOT / "scripts" / "setup.sh", os.X_OK)
