"""What keeps a site from starting is said in one sentence, before anything is changed."""

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from web.project.stack import preflight as module
from web.project.stack.preflight import (
    PreflightError,
    folder_locked,
    machine_check,
    port_check,
    python_check,
)

ROOT = Path(__file__).parents[2]
Usage = namedtuple("Usage", "total used free")


def preflight(*, data: Path, bind: str, port: int) -> None:
    machine_check(data)
    port_check(bind, port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_good_machine_passes(tmp_path: Path) -> None:
    preflight(data=tmp_path / "new", bind="127.0.0.1", port=free_port())
    assert list((tmp_path / "new").iterdir()) == []


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PreflightError, match=rf"Port {port} is in use .* --port"):
            preflight(data=tmp_path, bind="127.0.0.1", port=port)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_what_is_no_port_is_said_to_be_none(tmp_path: Path, port: int) -> None:
    with pytest.raises(PreflightError, match="is no port"):
        preflight(data=tmp_path, bind="127.0.0.1", port=port)


def test_an_address_of_another_machine_cannot_be_bound(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="--bind"):
        preflight(data=tmp_path, bind="192.0.2.1", port=free_port())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(PreflightError, match=r"data folder .* --data"):
        preflight(data=file / "data", bind="127.0.0.1", port=free_port())


def test_a_nearly_full_disk_is_told_in_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 0, 5 << 20))
    with pytest.raises(PreflightError, match=r"Only 5 MiB are free .* 1024 MiB"):
        preflight(data=tmp_path, bind="127.0.0.1", port=free_port())


def test_a_full_disk_is_not_called_a_missing_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PreflightError, match="full"):
        module.folder_check(tmp_path)


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (2, 7)])
def test_a_python_that_does_not_fit_is_named(version: tuple[int, int]) -> None:
    with pytest.raises(PreflightError, match=r"install Python 3\.11"):
        python_check(version)


def test_two_sites_never_share_a_folder(tmp_path: Path) -> None:
    said = pytest.raises(PreflightError, match=str(os.getpid()))
    with folder_locked(tmp_path), said, folder_locked(tmp_path):
        pass
    with folder_locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["--data", "/proc/none"], {}, "cannot be written"),
        ([], {"BEEYARD_PORT": "many"}, "BEEYARD_PORT must be a whole number"),
        ([], {"BEEYARD_DEMO": "perhaps"}, "BEEYARD_DEMO must be 1 or 0"),
        (["--port", "x"], {}, "invalid int value"),
    ],
    ids=["folder", "port", "demo", "flag"],
)
def test_the_command_ends_with_one_sentence_and_no_traceback(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], sentence: str
) -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BEEYARD_", "DJANGO_"))}
    result = subprocess.run(
        [sys.executable, "manage.py", "up", *arguments],
        cwd=ROOT,
        env=clean | {"BEEYARD_DATA": str(tmp_path)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode not in (0, None)
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
