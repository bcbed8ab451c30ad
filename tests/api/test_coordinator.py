"""Calls of coordinators over HTTP."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.factories import bearer, token_make
from tests.factories_runs import Swarm, run_make, signed, snapshot_post, swarm_make
from training.protocol.api import CheckpointOut, SnapshotResponse
from training.protocol.claims import CheckpointFile, CheckpointManifest, Revocations
from training.protocol.envelope import verify
from training.protocol.names import TYP_CHECKPOINT, TYP_REVOCATIONS
from web.accounts.models import User
from web.accounts.services import user_ban
from web.core.keys import site_keys_public

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/demo/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 2, users=[bob])


def checkpoint_post(client: Client, swarm: Swarm, token: str = "", **fields: Any) -> Any:
    manifest = CheckpointManifest(
        **{
            "run": "demo",
            "lineage": 1,
            "config_version": 1,
            "epoch": 3,
            "saved_at": timezone.now(),
            "files": (CheckpointFile(name="model.safetensors", sha256="a" * 64, size=3),),
            **fields,
        }
    )
    jws = signed(manifest, TYP_CHECKPOINT, swarm.coordinator_key, timezone.now())
    return client.post(
        RUN + "checkpoints/",
        {"manifest": jws},
        content_type="application/json",
        headers=bearer(token or swarm.token),
    )


def test_a_snapshot_is_accepted_once(client: Client, swarm: Swarm) -> None:
    answer = snapshot_post(client, swarm)
    assert answer.status_code == 200, answer.content
    first = SnapshotResponse.model_validate_json(answer.content)
    assert (first.accepted, first.last_seq, first.state) == (True, 1, "open")
    swarm.seq = 0
    again = SnapshotResponse.model_validate_json(snapshot_post(client, swarm).content)
    assert (again.accepted, again.last_seq) == (False, 1)
    assert client.get(RUN + "state/").json()["num_peers"] == 2


@pytest.mark.parametrize("jws", ["garbage", "a.b.c", "." * 9])
def test_a_garbage_snapshot_is_a_problem_with_a_remedy(
    client: Client, swarm: Swarm, jws: str
) -> None:
    answer = snapshot_post(client, swarm, jws)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_signature")
    assert answer.json()["remedy"]


def test_only_coordinators_report(client: Client, swarm: Swarm, bob: User, mallory: User) -> None:
    cases = (("", "not_authenticated"), (token_make(bob), "forbidden"),
             (token_make(mallory, "coordinator"), "banned"),
             (token_make(bob, "coordinator"), "not_joined"))  # fmt: skip
    for token, code in cases:
        headers = bearer(token) if token else {}
        for path, body in (("snapshots/", {"snapshot": "x"}), ("checkpoints/", {"manifest": "x"})):
            answer = client.post(RUN + path, body, content_type="application/json", headers=headers)
            assert answer.json()["code"] == code, path


def test_a_checkpoint_is_announced_listed_and_fetched(
    client: Client, swarm: Swarm, settings: Settings, tmp_path: Path
) -> None:
    settings.CHECKPOINTS_DIR = tmp_path
    folder = tmp_path / "demo" / "1-00000003"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"abc")
    made = CheckpointOut.model_validate_json(checkpoint_post(client, swarm).content)
    (listed,) = client.get(RUN + "checkpoints/").json()["items"]
    assert (made.epoch, listed["epoch"], listed["manifest"]) == (3, 3, made.manifest)
    file: Any = client.get(RUN + "checkpoints/3/model.safetensors")
    assert file.getvalue() == b"abc"
    assert file["ETag"] == f'"{"a" * 64}"'
    manifest = client.get(RUN + "checkpoints/3/manifest.jws?lineage=1")
    assert manifest.content.decode() == made.manifest


@pytest.mark.parametrize(
    "path",
    ["3/optimizer.safetensors", "3/..%2f..%2fsecret", "3/..", "4/model.safetensors", "x/y",
     "3/model.safetensors", "3/link", "3/model.safetensors?lineage=2"],
)  # fmt: skip
def test_nothing_else_on_the_disk_can_be_fetched(
    client: Client, swarm: Swarm, settings: Settings, tmp_path: Path, path: str
) -> None:
    settings.CHECKPOINTS_DIR = tmp_path / "checkpoints"
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "checkpoints" / "demo" / "1-00000003"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "secret")
    names = ("link", "model.safetensors")
    checkpoint_post(
        client,
        swarm,
        files=tuple(CheckpointFile(name=name, sha256="b" * 64, size=1) for name in names),
    )
    answer: Any = client.get(f"{RUN}checkpoints/{path}")
    assert answer.status_code == 404
    assert b"secret" not in answer.getvalue()


def test_revocations_are_numbered_and_signed_for_as_long_as_a_site_may_be_away(
    client: Client, swarm: Swarm, alice: User, bob: User
) -> None:
    assert client.get(RUN + "revocations/").json()["seq"] == 0
    user_ban(alice, bob, "spam")
    response = client.get(RUN + "revocations/")
    answer = response.json()
    now = timezone.now()
    body = verify(
        answer["jws"], typ=TYP_REVOCATIONS, model=Revocations, keys=site_keys_public(), now=now
    )
    expected = sorted(v.peer.peer_id for v in swarm.volunteers)
    assert sorted(body.body.peer_ids) == answer["peer_ids"] == expected
    assert body.body.seq == answer["seq"] == 1
    assert timedelta(hours=3) < body.expires_at - now < timedelta(hours=4, minutes=1)
    assert "max-age=2" in response["Cache-Control"]
    headers = {"If-None-Match": response["ETag"]}
    assert client.get(RUN + "revocations/", headers=headers).status_code == 304
