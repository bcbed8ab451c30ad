"""The wheel that volunteers install from this very site: same version, no package index needed."""

import hashlib
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def sources_hash() -> str:
    """Return a hash of everything that goes into the wheel."""
    root = Path(settings.BASE_DIR)
    digest = hashlib.sha256((root / "pyproject.toml").read_bytes())
    for file in sorted((root / "training").rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def wheel_build() -> bool:
    """Build the wheel into the data folder unless it is there; returns whether it is there now.

    The package builds with what the environment has: no network.
    """
    folder = Path(settings.DATA_DIR) / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    stamp, wanted = folder / "sources.sha256", sources_hash()
    if stamp.exists() and stamp.read_text() == wanted and list(folder.glob("*.whl")):
        return True
    command = [
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--no-index", "--wheel-dir", str(folder), str(settings.BASE_DIR)),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode:
        (folder / "build.log").write_text(result.stdout + result.stderr)
        return False
    stamp.write_text(wanted)
    return True
