"""The wheel that volunteers install from this very site: same version, no package index needed."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings

from training.protocol.names import ENV_DATA, ENV_PROCESS

_PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE")


def sources_hash() -> str:
    """Return a hash of everything that goes into the wheel."""
    root, digest = Path(settings.BASE_DIR), hashlib.sha256()
    files = [root / name for name in _PROJECT_FILES if (root / name).exists()]
    package = [f for f in (root / "training").rglob("*") if f.suffix in (".py", ".json", ".typed")]
    for file in sorted([*files, *package]):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def wheel_build() -> bool:
    """Build the wheel into the data folder unless it is there; returns whether it is there now.

    It is built with what the environment has, without a network, from a copy: building leaves
    files beside the sources, which may not be writable.
    """
    folder = Path(settings.DATA_DIR) / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    stamp, wanted = folder / "sources.sha256", sources_hash()
    if stamp.exists() and stamp.read_text() == wanted and list(folder.glob("*.whl")):
        return True
    with tempfile.TemporaryDirectory(prefix="beeyard-wheel-") as copy:
        _sources_copy(Path(copy))
        result = _pip_wheel(Path(copy), folder)
    if result.returncode:
        (folder / "build.log").write_text(result.stdout + result.stderr)
        return False
    stamp.write_text(wanted)
    return True


def _sources_copy(to: Path) -> None:
    root = Path(settings.BASE_DIR)
    for name in _PROJECT_FILES:
        if (root / name).exists():
            shutil.copy2(root / name, to / name)
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "training", to / "training", ignore=skipped)


def _pip_wheel(sources: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--no-index", "--disable-pip-version-check", "--wheel-dir", str(folder), str(sources)),
    ]
    marks = {ENV_DATA: str(settings.DATA_DIR), ENV_PROCESS: "wheel"}
    return subprocess.run(
        command,
        env=dict(os.environ) | marks,
        cwd=sources,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
