"""The site's key: made once, private, rotated so that clients can follow."""

import threading
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from training.client.trust import Trust, trust_extend
from training.protocol.claims import Revocations
from training.protocol.envelope import EnvelopeError, verify
from training.protocol.keys import key_load
from training.protocol.names import TYP_CONFIG, TYP_REVOCATIONS
from web.core.keys import jwks, site_key, site_key_rotate, site_keys_public, site_sign
from web.core.models import AuditEntry
from web.core.secretfiles import secret_file_keep, secret_file_write

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def keys_folder(settings: Any, tmp_path: Path) -> Path:
    settings.KEYS_DIR = tmp_path / "keys"
    return tmp_path / "keys"


def read(token: str) -> Revocations:
    now = datetime.now(UTC)
    return verify(
        token, typ=TYP_REVOCATIONS, model=Revocations, keys=site_keys_public(), now=now
    ).body


def signed() -> str:
    return site_sign(Revocations(run="python-docs", peer_ids=()), TYP_REVOCATIONS, HOUR)


def test_what_the_site_signs_is_verified_with_its_published_keys() -> None:
    assert read(signed()).run == "python-docs"
    with pytest.raises(EnvelopeError):
        verify(
            signed(), typ=TYP_CONFIG, model=Revocations, keys=[site_key()], now=datetime.now(UTC)
        )


def test_the_key_is_made_once_and_only_we_can_read_it(keys_folder: Path) -> None:
    first = site_key().thumbprint()
    assert site_key().thumbprint() == first
    assert (keys_folder / "site.jwk").stat().st_mode & 0o777 == 0o600
    assert keys_folder.stat().st_mode & 0o777 == 0o700


def test_the_private_half_is_never_published() -> None:
    site_key_rotate()
    assert all("d" not in jwk for jwk in jwks()["keys"])
    assert not any(key.is_private for key in site_keys_public())


def test_processes_that_start_together_agree_on_one_key(keys_folder: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(site_key().thumbprint())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [path.name for path in keys_folder.iterdir()] == ["site.jwk"]


def test_after_rotations_old_messages_verify_and_clients_follow() -> None:
    old = signed()
    pinned = Trust((key_load(jwks()["keys"][0]),))
    site_key_rotate()
    newest = site_key_rotate()
    published = [(key_load(jwk), jwk.get("vouched_by", "")) for jwk in jwks()["keys"]]
    assert len(published) == 3
    assert jwks()["keys"][0]["kid"] == newest.thumbprint() == site_key().thumbprint()
    assert read(old)
    trust = trust_extend(pinned, published, now=datetime.now(UTC))
    assert newest.thumbprint() in {key.thumbprint() for key in trust.keys}


def test_a_file_that_exists_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "secret"
    secret_file_keep(path, lambda: "first")
    secret_file_keep(path, lambda: "second")
    assert path.read_text() == "first"
    secret_file_write(path, "third")
    assert path.read_text() == "third"
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


@pytest.mark.django_db
def test_the_command_rotates_the_key_and_writes_it_down() -> None:
    before = site_key().thumbprint()
    out = StringIO()
    call_command("rotate_site_key", stdout=out)
    assert site_key().thumbprint() != before
    assert site_key().thumbprint() in out.getvalue()
    assert AuditEntry.objects.get().code == "site.key.rotated"
