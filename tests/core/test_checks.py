"""Unsafe settings are named in a sentence, with a hint."""

from pathlib import Path
from typing import Any

import pytest

from web.project.checks import (
    address_check,
    data_folder_check,
    is_loopback,
    secret_check,
    verification_check,
)


def ids(found: list[Any]) -> list[str]:
    assert all(message.hint for message in found)
    return [message.id for message in found]


@pytest.mark.parametrize(
    ("public", "bind", "proxy", "expected"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", False, []),
        ("https://train.example.org", "0.0.0.0", False, []),
        ("http://train.example.org", "0.0.0.0", False, ["project.W001"]),
        ("http://train.example.org", "127.0.0.1", False, []),
        ("train.example.org", "127.0.0.1", False, ["project.E001"]),
        ("https://train.example.org/site", "127.0.0.1", False, ["project.E001"]),
        ("ftp://train.example.org", "127.0.0.1", False, ["project.E001"]),
    ],
)
def test_addresses(settings: Any, public: str, bind: str, proxy: bool, expected: list[str]) -> None:
    settings.PUBLIC_URL, settings.BIND, settings.BEHIND_PROXY = public, bind, proxy
    assert ids(address_check()) == expected


def test_a_short_secret_and_public_debugging_are_refused(settings: Any) -> None:
    settings.BIND = "0.0.0.0"
    assert ids(secret_check()) == []
    settings.SECRET_KEY, settings.DEBUG = "short", True
    assert ids(secret_check()) == ["project.E002", "project.E003"]
    settings.BIND = "::1"
    assert ids(secret_check()) == ["project.E002"]


def test_a_data_folder_that_is_a_file_is_refused(settings: Any, tmp_path: Path) -> None:
    settings.KEYS_DIR = tmp_path / "keys"
    settings.DATA_DIR = tmp_path / "new" / "folder"
    assert ids(data_folder_check()) == []
    (tmp_path / "file").write_text("")
    settings.DATA_DIR = tmp_path / "file" / "data"
    assert ids(data_folder_check()) == ["project.E004"]


def test_a_secret_that_others_can_read_is_refused(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = settings.KEYS_DIR = tmp_path
    secret = tmp_path / "secret_key"
    secret.write_text("x")
    secret.chmod(0o644)
    assert ids(data_folder_check()) == ["project.E005"]
    secret.chmod(0o600)
    assert ids(data_folder_check()) == []


def test_an_unknown_kind_of_verification_is_refused(settings: Any) -> None:
    assert ids(verification_check()) == []
    settings.ACCOUNT_EMAIL_VERIFICATION = "sometimes"
    assert ids(verification_check()) == ["project.E006"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("x.org", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
