"""Checks before training: each failure has a code and a remedy."""

import email.utils
import importlib.metadata
import re
import shutil
import socket
import subprocess
from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from tests.client.conftest import ClientMaker
from tests.client.stand_in_site import Answer, StandInSite
from training.client import preflight
from training.client.clock import SiteClock
from training.client.preflight import CheckResult, clock_check, machine_checks, site_checks
from training.client.reach import bootstrap_check, tcp_target

ORDER = ["python_version", "system", "torch", "hivemind", "memory", "disk", "temp_path"]
Memory = namedtuple("Memory", "available")
Disk = namedtuple("Disk", "free")


def check_of(code: str, home: Path, *, import_all: bool = False) -> CheckResult:
    return next(c for c in machine_checks(home, import_all=import_all) if c.code == code)


def test_checks_come_in_order_and_failures_carry_remedies(tmp_path: Path) -> None:
    checks = machine_checks(tmp_path, import_all=False)
    assert [check.code for check in checks] == ORDER
    assert all(check.ok or check.remedy for check in checks)


@pytest.mark.parametrize(
    ("free", "ok", "blocking"),
    [(100 << 20, False, True), (1 << 30, False, False), (9 << 30, True, False)],
)
def test_little_memory_warns_and_hardly_any_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, ok: bool, blocking: bool
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(free))
    check = check_of("memory", tmp_path)
    assert (check.ok, check.is_blocking) == (ok, blocking)
    assert bool(check.remedy) is not ok


def test_a_full_disk_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(50 << 20))
    check = check_of("disk", tmp_path)
    assert check.is_blocking
    assert "--home" in check.remedy


def test_a_missing_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    for name in ("torch", "hivemind"):
        check = check_of(name, tmp_path)
        assert check.is_blocking
        assert "pip install" in check.remedy


def test_a_package_that_kills_the_interpreter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], -4, "", "")

    monkeypatch.setattr(subprocess, "run", killed)
    check = check_of("torch", tmp_path, import_all=True)
    assert check.is_blocking
    assert "exit code -4" in check.text


def test_a_package_is_really_imported_in_a_process_of_its_own() -> None:
    check = preflight._package("rich", import_it=True)
    assert check.ok
    assert "can be imported" in check.text


def test_a_long_temporary_path_breaks_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("x" * 90)
    folder.mkdir()
    monkeypatch.setattr(preflight.tempfile, "gettempdir", lambda: str(folder))
    check = check_of("temp_path", tmp_path)
    assert check.is_blocking
    assert "TMPDIR" in check.remedy


def test_the_windows_subsystem_is_told_about_client_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "is_wsl", lambda: True)
    check = check_of("system", tmp_path)
    assert check.ok
    assert "--client-mode" in check.remedy


def test_a_site_that_answers_is_checked_for_its_clock(
    site: StandInSite, client_make: ClientMaker
) -> None:
    assert [c.code for c in site_checks(client_make()) if c.ok] == ["site", "clock"]
    site.clock_shift = 300.0
    clock = site_checks(client_make())[1]
    assert not clock.ok
    assert re.search(r"(299|300|301) s behind", clock.text)
    assert not clock.is_blocking, "the swarm's time is corrected instead"


@pytest.mark.parametrize(
    ("offset", "ok"), [(0.0, True), (1.9, True), (-2.9, False), (-4.0, False), (300.0, False)]
)
def test_a_clock_is_warned_of_at_two_seconds_and_never_stops_the_training(
    offset: float, ok: bool
) -> None:
    clock = SiteClock()
    for tenth in range(10):  # dates of whole seconds, seen at all fractions of a second
        now = 1000 + tenth * 1.1
        date = email.utils.formatdate(int(now + offset), usegmt=True)
        clock.observe(date, sent=now, received=now)
    check = clock_check(clock)
    assert (check.ok, check.is_blocking) == (ok, False)
    assert abs(clock.correction - offset) < 0.2
    assert clock.correction == 0.0 or offset != 0.0


def test_a_site_that_fails_is_the_only_check(site: StandInSite, client_make: ClientMaker) -> None:
    site.overrides["/api/v1/keys/"] = lambda call: Answer(500, b"oops")
    (check,) = site_checks(client_make())
    assert check.is_blocking
    assert check.code == "site"


def test_one_living_entrance_is_enough_and_dead_ones_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        alive, dead = server.getsockname()[1], closed.getsockname()[1]
        both = [f"/ip4/127.0.0.1/tcp/{port}/p2p/QmX" for port in (alive, dead)]
        check = bootstrap_check(tuple(both))
        assert check.ok
        assert f"127.0.0.1:{dead}" in check.text
        assert bootstrap_check((both[1],)).is_blocking


def test_a_run_without_entrances_is_not_the_volunteers_fault() -> None:
    check = bootstrap_check(())
    assert check.is_blocking
    assert "not your fault" in check.remedy


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/ip4/1.2.3.4/tcp/5/p2p/Qm", ("1.2.3.4", 5)),
        ("/ip6/::1/tcp/5", ("::1", 5)),
        ("/dns4/a.org/tcp/443/p2p/Qm", ("a.org", 443)),
        ("/ip4/1.2.3.4/udp/5/quic", None),
        ("/ip4/1.2.3.4/tcp/5/p2p/Qm/p2p-circuit", None),
        ("/ip4/1.2.3.4/tcp/99999", None),
        ("/p2p/Qm", None),
        ("", None),
    ],
)
def test_multiaddresses_are_read(text: str, target: tuple[str, int] | None) -> None:
    assert tcp_target(text) == target
