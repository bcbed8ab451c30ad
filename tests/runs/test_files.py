"""Artifacts and checkpoints."""

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.factories_runs import Swarm, draft_make, run_make, signed, swarm_make
from training.protocol.claims import CheckpointFile, CheckpointManifest
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.names import TYP_CHECKPOINT
from web.accounts.models import User
from web.core.errors import AppError
from web.monitoring.models import RunEvent
from web.monitoring.selectors import live_state
from web.runs.models import Artifact
from web.runs.selectors import checkpoint_latest
from web.runs.services import artifact_path, artifact_store, checkpoint_register

pytestmark = pytest.mark.django_db


@pytest.fixture
def swarm(alice: User) -> Swarm:
    draft = draft_make(checkpoint={"every_epochs": 1, "keep": 2})
    return swarm_make(run_make(alice, draft=draft), 0)


def manifest_make(**fields: Any) -> CheckpointManifest:
    return CheckpointManifest(
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


def register(swarm: Swarm, **fields: Any) -> None:
    jws = signed(manifest_make(**fields), TYP_CHECKPOINT, swarm.coordinator_key, timezone.now())
    checkpoint_register(swarm.run, swarm.coordinator, jws)


def test_a_file_is_kept_once_under_its_hash(settings: Settings, tmp_path: Path) -> None:
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    source = tmp_path / "tokenizer.json"
    source.write_bytes(b"pieces")
    first = artifact_store(source, "tokenizer.json")
    second = artifact_store(b"pieces", "again.json")
    assert first == second == Artifact.objects.get()
    assert first.sha256 == hashlib.sha256(b"pieces").hexdigest()
    assert artifact_path(first.sha256).read_bytes() == b"pieces"
    assert [path.name for path in settings.ARTIFACTS_DIR.iterdir()] == [first.sha256]
    for data, name in ((b"", "empty"), (b"x", "../up"), (b"x", "")):
        with pytest.raises(AppError):
            artifact_store(data, name)
    assert len(list(settings.ARTIFACTS_DIR.iterdir())) == 1


def test_a_checkpoint_is_listed_and_told(swarm: Swarm) -> None:
    register(swarm, epoch=3)
    checkpoint = checkpoint_latest(swarm.run)
    assert checkpoint is not None
    assert (checkpoint.epoch, checkpoint.files[0]["name"]) == (3, "model.safetensors")
    assert live_state(swarm.run)["checkpoint_epoch"] == 3
    event = RunEvent.objects.first()
    assert event is not None
    assert (event.kind, event.text) == ("checkpoint.saved", "The state after epoch 3 was saved")


def test_a_checkpoint_that_is_announced_again_replaces_the_first(swarm: Swarm) -> None:
    register(swarm, epoch=3)
    files = (CheckpointFile(name="b", sha256="b" * 64, size=1),)
    register(swarm, epoch=3, files=files)
    assert swarm.run.checkpoints.get().files[0]["name"] == "b"
    assert RunEvent.objects.filter(kind="checkpoint.saved").count() == 1


def test_as_many_are_listed_as_the_coordinator_keeps(swarm: Swarm) -> None:
    for epoch in (1, 2, 3, 4):
        register(swarm, epoch=epoch)
    assert list(swarm.run.checkpoints.values_list("epoch", flat=True)) == [4, 3]
    assert checkpoint_latest(swarm.run, 2) is None


@pytest.mark.parametrize("fields", [{"run": "other"}, {"lineage": 2}, {"config_version": 2}])
def test_a_manifest_of_another_place_is_refused(swarm: Swarm, fields: dict[str, Any]) -> None:
    with pytest.raises(AppError) as error:
        register(swarm, **fields)
    assert error.value.code == ErrorCode.BODY_INVALID


def test_only_the_coordinators_signature_counts(swarm: Swarm) -> None:
    now = timezone.now()
    for key, at, code in (
        (key_generate(), now, ErrorCode.UNKNOWN_KEY),
        (swarm.coordinator_key, now - timedelta(days=1), ErrorCode.ENVELOPE_EXPIRED),
    ):
        jws = signed(manifest_make(), TYP_CHECKPOINT, key, at)
        with pytest.raises(AppError) as error:
            checkpoint_register(swarm.run, swarm.coordinator, jws)
        assert error.value.code == code
    assert not swarm.run.checkpoints.exists()
