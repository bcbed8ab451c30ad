"""Vendored files are the ones that VENDOR.md names, unchanged."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "static" / "vendor"
ROW = re.compile(r"^\| (\S+) \| \S+ \| (\S+) \| \S+ \| ([0-9a-f]{64}) \|$", re.MULTILINE)


def test_every_vendored_file_has_the_hash_that_is_written_down() -> None:
    written = {name: digest for name, _, digest in ROW.findall((VENDOR / "VENDOR.md").read_text())}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "VENDOR.md"
    }
    assert found == written


def test_the_names_of_vendored_files_carry_their_version() -> None:
    for name, version, _ in ROW.findall((VENDOR / "VENDOR.md").read_text()):
        assert f"-{version}." in name
