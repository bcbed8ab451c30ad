"""The beeyard home: keys, privacy, damage, and one process per run."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training.client.address import run_address_parse, site_address_parse
from training.client.errors import ClientError, ExitCode
from training.client.files import file_write, json_write
from training.client.store import Home, home_open, run_locked
from training.client.swarm_key import swarm_key_load_or_create

HOLD = """
import sys, time
from pathlib import Path
from training.client.store import run_locked
with run_locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def refused_for(path: Path, home: Home) -> ClientError:
    with pytest.raises(ClientError) as caught:
        home.swarm_key() if path.name == "swarm.key" else home.device_key()
    assert caught.value.exit_code == ExitCode.USAGE
    assert str(path) in caught.value.remedy
    return caught.value


def test_keys_are_made_once_and_only_the_owner_may_read_them(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    assert home.device_key().thumbprint() == home.device_key().thumbprint()
    assert home.swarm_key() == home.swarm_key()
    assert (home.root / "device.jwk").stat().st_mode & 0o777 == 0o600
    assert (home.root / "swarm.key").stat().st_mode & 0o777 == 0o400
    assert home.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"\x08\x00\x12", b"{}", b"\x08\x00\x12\x05hello"])
@pytest.mark.parametrize("name", ["swarm.key", "device.jwk"])
def test_a_damaged_key_names_its_file(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    refused_for(path, Home(tmp_path))


def test_a_cut_swarm_key_is_damaged(tmp_path: Path, identity: bytes) -> None:
    path = tmp_path / "swarm.key"
    path.write_bytes(identity[:-1])
    refused_for(path, Home(tmp_path))


def test_the_identity_file_is_the_one_that_libp2p_reads(tmp_path: Path, identity: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(identity)
    key = swarm_key_load_or_create(path)
    assert identity[:3] == b"\x08\x00\x12"
    assert identity.endswith(key.private_der)
    assert key.peer_id.startswith("Qm")
    assert len(key.thumbprint) == 64


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    file_write(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClientError, match="No space left"):
        file_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_second_process_in_the_same_run_is_told_who_runs(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ClientError) as caught, run_locked(tmp_path):
            pass
        assert f"process {holder.pid}" in caught.value.detail
        assert (caught.value.code, caught.value.exit_code) == ("already_running", ExitCode.USAGE)
    finally:
        holder.kill()
        holder.communicate()
    with run_locked(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_children_that_outlive_a_killed_trainer_do_not_keep_the_run(tmp_path: Path) -> None:
    fork = HOLD.replace("time.sleep(60)", "import os; os.fork(); time.sleep(60)")
    holder = subprocess.Popen(
        [sys.executable, "-c", fork, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        time.sleep(0.3)
        holder.kill()
        holder.wait()
        with run_locked(tmp_path):
            pass
    finally:
        os.killpg(holder.pid, 9)
        holder.stdout.close()


def test_the_home_is_the_option_then_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEEYARD_HOME", str(tmp_path / "env"))
    assert home_open(None).root == tmp_path / "env"
    assert home_open(str(tmp_path / "option")).root == tmp_path / "option"


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClientError) as caught:
        home_open(str(tmp_path / "file" / "home"))
    assert "--home" in caught.value.remedy


def test_json_files_are_private_too(tmp_path: Path) -> None:
    json_write(tmp_path / "new" / "x.json", {"a": 1})
    assert (tmp_path / "new" / "x.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("url", "origin", "slug"),
    [
        ("http://127.0.0.1:8000/runs/my-run/", "http://127.0.0.1:8000", "my-run"),
        ("https://Example.org/runs/a/config/?x=1", "https://example.org", "a"),
        ("example.org:81/runs/a", "http://example.org:81", "a"),
        ("https://example.org:443/", "https://example.org", None),
        ("http://[::1]:8000/runs/a/", "http://[::1]:8000", "a"),
    ],
)
def test_addresses_are_read_as_people_copy_them(url: str, origin: str, slug: str | None) -> None:
    address = site_address_parse(url)
    assert (address.origin, address.slug) == (origin, slug)


@pytest.mark.parametrize(
    "url", ["", "ftp://x/runs/a/", "http://", "http://a:b@x/runs/a/", "http://x:99999/", "/runs/a/"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ClientError) as caught:
        run_address_parse(url)
    assert caught.value.exit_code == ExitCode.USAGE


def test_only_clear_text_over_the_internet_is_exposed() -> None:
    exposed = {
        url: site_address_parse(url).is_exposed
        for url in ("http://127.0.0.1:1", "http://192.168.1.4", "http://8.8.8.8", "https://8.8.8.8")
    }
    assert list(exposed.values()) == [False, False, True, False]
