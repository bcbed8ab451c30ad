"""Settings come from flags, the environment, files and .env, in this order of precedence."""

import os
import stat
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from web.project.env import env_bool, env_file_read, env_int, env_list, env_secret, env_text
from web.project.stack.first import flags_parse, flags_take


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("off", False), ("0", False), ("", False)]
)
def test_a_switch_has_many_spellings(
    monkeypatch: pytest.MonkeyPatch, text: str, value: bool
) -> None:
    monkeypatch.setenv("BEEYARD_SWITCH", text)
    assert env_bool("BEEYARD_SWITCH", default=not value) is value


def test_a_wrong_value_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEEYARD_SWITCH", "perhaps")
    with pytest.raises(ImproperlyConfigured, match=r"BEEYARD_SWITCH must be 1 or 0.*perhaps"):
        env_bool("BEEYARD_SWITCH", default=True)
    with pytest.raises(ImproperlyConfigured, match="BEEYARD_SWITCH must be a whole number"):
        env_int("BEEYARD_SWITCH", 1)


def test_a_list_is_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEEYARD_LIST", "a.example, b.example,")
    assert env_list("BEEYARD_LIST") == ["a.example", "b.example"]


def test_a_secret_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    monkeypatch.setenv("BEEYARD_THING_FILE", str(file))
    assert env_text("BEEYARD_THING") == "from a file"
    file.unlink()
    with pytest.raises(ImproperlyConfigured, match="BEEYARD_THING_FILE"):
        env_text("BEEYARD_THING")


def test_a_secret_that_is_not_given_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "secret"
    first = env_secret("BEEYARD_NOT_GIVEN", file)
    assert len(first) > 40
    assert env_secret("BEEYARD_NOT_GIVEN", file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [p.name for p in file.parent.iterdir()] == ["secret"]


def test_a_dotenv_file_gives_names_and_values(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert env_file_read(file) == {}
    file.write_text("# a comment\nA=1\n\nB = 'two words'\nno value\nC=x=y\n")
    assert env_file_read(file) == {"A": "1", "B": "two words", "C": "x=y"}


def test_flags_win_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BEEYARD_PORT", "BEEYARD_BIND", "BEEYARD_DEMO", "BEEYARD_DATA"):
        monkeypatch.setenv(name, "from the environment")
    data = tmp_path / "data"
    flags_take(["--port", "9001", "--bind", "0.0.0.0", "--no-demo", "--data", str(data)])
    assert os.environ["BEEYARD_PORT"] == "9001"
    assert os.environ["BEEYARD_BIND"] == "0.0.0.0"
    assert os.environ["BEEYARD_DEMO"] == "0"
    assert os.environ["BEEYARD_DATA"] == str(data)
    assert data.is_dir()


def test_the_data_folder_is_absolute_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEEYARD_DATA", "relative")
    flags_take([])
    assert os.environ["BEEYARD_DATA"] == str(tmp_path / "relative")


def test_an_unknown_flag_ends_with_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        flags_parse(["--prot", "9000"])
    assert ended.value.code == 2
    assert "--port" in capsys.readouterr().err
