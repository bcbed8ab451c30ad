"""Checks before training: each has a code, a sentence, and a remedy when it fails."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from training.client.clock import WARN_SECONDS, SiteClock
from training.client.errors import ClientError
from training.client.hardware import is_wsl
from training.client.http import PlatformClient

Severity = Literal["error", "warning", "info"]
_GIB = 1 << 30
_MIN_MEMORY, _WISH_MEMORY = 700 << 20, 2 * _GIB
_MIN_DISK, _WISH_DISK = 200 << 20, 2 * _GIB
_SOCKET_PATH_BYTES = 107
"""Longest path of a unix socket on Linux (macOS: 103)."""
_SOCKET_NAME_BYTES = 36
"""hivemind's socket names below the temporary folder."""
_INSTALL = "Install what training needs: pip install 'beeyard[train]'."


@dataclass(frozen=True)
class CheckResult:
    """One check. ``severity`` says how bad it would be (or is) when not ``ok``."""

    code: str
    ok: bool
    severity: Severity
    text: str
    remedy: str = ""

    @property
    def is_blocking(self) -> bool:
        return not self.ok and self.severity == "error"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def machine_checks(home: Path, *, import_all: bool) -> list[CheckResult]:
    """Return the checks that need no network, in the order in which they matter.

    ``import_all`` really imports torch and hivemind, in another process, since a broken build
    can kill the interpreter; without it only their versions are looked up.
    """
    checks = [_python(), _system()]
    checks += [_package(name, import_it=import_all) for name in ("torch", "hivemind")]
    return [*checks, _memory(), _disk(home), _temporary_folder()]


def site_checks(client: PlatformClient) -> list[CheckResult]:
    """Return whether the site answers and how far its clock is."""
    try:
        client.get_json("/keys/")
    except ClientError as error:
        return [CheckResult("site", False, "error", error.detail, error.remedy)]
    site = CheckResult("site", True, "error", f"{client.address.origin} answers")
    checks = [site, clock_check(client.clock)]
    if client.address.is_exposed:
        checks.append(
            CheckResult(
                "plain_http",
                False,
                "warning",
                f"{client.address.origin} is not encrypted: others can read your token",
                "Use the https address of the site if it has one.",
            )
        )
    return checks


def clock_check(clock: SiteClock) -> CheckResult:
    """Return whether this machine's clock agrees with the site's."""
    offset = clock.offset
    if offset is None:
        return CheckResult("clock", False, "warning", "the site does not tell its time")
    side = "behind" if offset > 0 else "ahead of"
    text = f"the clock is {abs(offset):.0f} s {side} the site's; training goes by the site's time"
    remedy = "Switch on time synchronisation, such as `timedatectl set-ntp true`."
    if clock.is_off(WARN_SECONDS):
        return CheckResult("clock", False, "warning", text, remedy)
    return CheckResult("clock", True, "warning", f"the clock is right to {WARN_SECONDS:.0f} s")


def _python() -> CheckResult:
    version = platform.python_version()
    ok = (3, 11) <= sys.version_info[:2] < (3, 14)
    return CheckResult(
        "python_version",
        ok,
        "error",
        f"Python {version}",
        "" if ok else "Use Python 3.11, 3.12 or 3.13.",
    )


def _system() -> CheckResult:
    name = platform.system()
    if name == "Windows":
        return CheckResult(
            "system", False, "error", "Windows itself cannot train", "Use WSL 2 or Docker."
        )
    if is_wsl():
        return CheckResult(
            "system",
            True,
            "info",
            "Windows Subsystem for Linux: others cannot connect to this machine",
            "Add --client-mode; it costs nothing but help with averaging.",
        )
    return CheckResult("system", True, "error", f"{name} {platform.machine()}")


def _package(name: str, *, import_it: bool) -> CheckResult:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return CheckResult(name, False, "error", f"{name} is not installed", _INSTALL)
    if not import_it:
        return CheckResult(name, True, "error", f"{name} {version}")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import {name}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
        text = f"{name} {version} cannot be imported: {reason}"
        return CheckResult(name, False, "error", text, _INSTALL)
    return CheckResult(name, True, "error", f"{name} {version} can be imported")


def _memory() -> CheckResult:
    free = psutil.virtual_memory().available
    return _amount("memory", "free memory", free, _MIN_MEMORY, _WISH_MEMORY, "Close programs.")


def _disk(home: Path) -> CheckResult:
    free = shutil.disk_usage(home).free
    remedy = "Free some disk space, or choose another folder with --home."
    return _amount("disk", f"free on the disk of {home}", free, _MIN_DISK, _WISH_DISK, remedy)


def _amount(code: str, what: str, value: int, least: int, wish: int, remedy: str) -> CheckResult:
    ok = value >= wish
    severity: Severity = "error" if value < least else "warning"
    text = f"{value / _GIB:.1f} GiB {what}"
    return CheckResult(code, ok, severity, text, "" if ok else remedy)


def _temporary_folder() -> CheckResult:
    folder = tempfile.gettempdir()
    if not os.access(folder, os.W_OK):
        text, ok = f"the temporary folder {folder} is not writable", False
    else:
        ok = len(os.fsencode(folder)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES
        text = f"sockets fit into {folder}" if ok else f"{folder} is too long a path for sockets"
    return CheckResult(
        "temp_path", ok, "error", text, "" if ok else "Set TMPDIR to a short path, such as /tmp."
    )
