"""Volunteers install the very package that this site runs."""

import zipfile
from pathlib import Path

import pytest
from pytest_django import Settings

from training.protocol.names import TRAINER_VERSION
from web.project.stack import wheel


@pytest.mark.timeout(300)
def test_the_wheel_is_built_once_without_a_network_and_leaves_the_sources_alone(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    before = sorted(Path(settings.BASE_DIR).iterdir())
    assert wheel.wheel_build(), (tmp_path / "dist" / "build.log").read_text()
    built = tmp_path / "dist" / f"beeyard-{TRAINER_VERSION}-py3-none-any.whl"
    names = zipfile.ZipFile(built).namelist()
    assert "training/protocol/names.py" in names
    assert not [name for name in names if name.startswith("web/")]
    assert sorted(Path(settings.BASE_DIR).iterdir()) == before

    def unexpected(*arguments: object) -> None:
        raise AssertionError("the same sources are not built twice")

    monkeypatch.setattr(wheel, "_pip_wheel", unexpected)
    assert wheel.wheel_build()
    monkeypatch.setattr(wheel, "sources_hash", lambda: "changed")
    with pytest.raises(AssertionError, match="not built twice"):
        wheel.wheel_build()
