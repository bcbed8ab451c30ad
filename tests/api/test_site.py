"""Keys and files, kept by callers as long as they may be."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient, Client

from training.protocol.keys import key_load
from web.api.files import file_answer
from web.core.keys import site_key
from web.runs.services import artifact_store

pytestmark = pytest.mark.django_db
DATA = bytes(range(256)) * 3000
SHA256 = hashlib.sha256(DATA).hexdigest()
PATH = f"/api/v1/artifacts/{SHA256}/"


@pytest.fixture
def artifact(settings: Any, tmp_path: Path) -> None:
    settings.ARTIFACTS_DIR = tmp_path
    assert artifact_store(DATA, "tokenizer.json").sha256 == SHA256


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def test_the_keys_are_public_halves_only(client: Client) -> None:
    response = client.get("/api/v1/keys/")
    keys = [key_load(jwk) for jwk in response.json()["keys"]]
    assert keys[0].thumbprint() == site_key().thumbprint()
    assert not any(key.is_private for key in keys)
    again = client.get("/api/v1/keys/", headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304


@pytest.mark.usefixtures("artifact")
def test_a_file_is_served_whole_and_kept_for_ever(client: Client) -> None:
    response = client.get(PATH)
    assert body_of(response) == DATA
    assert response["Content-Length"] == str(len(DATA))
    assert response["ETag"] == f'"{SHA256}"'
    assert "immutable" in response["Cache-Control"]
    assert 'filename="tokenizer.json"' in response["Content-Disposition"]
    unchanged = client.get(PATH, headers={"If-None-Match": response["ETag"]})
    assert unchanged.status_code == 304
    assert "immutable" in unchanged["Cache-Control"]


@pytest.mark.usefixtures("artifact")
@pytest.mark.parametrize(
    ("headers", "start"),
    [
        ({"Range": "bytes=700000-"}, 700_000),
        ({"Range": "bytes=700000-", "If-Range": f'"{SHA256}"'}, 700_000),
        ({"Range": "bytes=700000-", "If-Range": '"other"'}, 0),
        ({"Range": f"bytes={len(DATA)}-"}, 0),
        ({"Range": "bytes=-5"}, 0),
        ({"Range": "bytes=0-"}, 0),
        ({"Range": "nonsense"}, 0),
    ],
)
def test_a_download_goes_on_where_it_stopped(
    client: Client, headers: dict[str, str], start: int
) -> None:
    response = client.get(PATH, headers=headers)
    assert response.status_code == (206 if start else 200)
    assert body_of(response) == DATA[start:]
    if start:
        assert response["Content-Range"] == f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"


@pytest.mark.usefixtures("artifact")
@pytest.mark.django_db(transaction=True)
async def test_a_file_is_streamed_under_asgi(async_client: AsyncClient) -> None:
    response: Any = await async_client.get(PATH)
    assert b"".join([chunk async for chunk in response.streaming_content]) == DATA
    await sync_to_async(connections.close_all)()  # the one of the thread that ran the view


@pytest.mark.parametrize("name", ["0" * 64, "abc", "..%2f..%2fsecret_key", "A" * 64])
def test_only_files_that_a_config_names_are_served(client: Client, name: str) -> None:
    assert client.get(f"/api/v1/artifacts/{name}/").status_code in (404, 422)


@pytest.mark.usefixtures("artifact")
def test_a_file_that_is_gone_from_disk_is_a_problem(
    client: Client, tmp_path: Path, rf: Any
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    response = client.get(PATH)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_a_private_file_is_not_kept_by_proxies(tmp_path: Path, rf: Any) -> None:
    (tmp_path / "f").write_bytes(DATA)
    answer: Any = file_answer(rf.get("/"), tmp_path / "f", sha256=SHA256, name="f", is_public=False)
    assert answer["Cache-Control"].startswith("private")
    assert body_of(answer) == DATA
