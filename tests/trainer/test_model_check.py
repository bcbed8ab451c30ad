"""A machine whose model is not the run's is told so before it bothers any peer."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from training.client.errors import ClientError, ExitCode
from training.client.status import status_read
from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.claims import CheckpointManifest
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.errors import ErrorCode
from training.swarm.state_files import StateShapeError, schema_sha256
from training.tasks.registry import task_get
from training.trainer import run
from training.trainer.run import schema_check, trainer_run
from training.trainer.session import TrainerSession, TrainerStats

CONFIG = RunConfig(run="tiny", title="Tiny", version=1, task=TaskConfig(name="tiny"))


class SilentUI:
    def phase(self, text: str) -> None: ...

    def progress(self, stats: TrainerStats) -> None: ...

    def line(self, text: str) -> None: ...


def manifest(schema: str | None) -> CheckpointManifest:
    return CheckpointManifest(
        run="tiny",
        lineage=1,
        config_version=1,
        epoch=3,
        saved_at=datetime.now(UTC),
        files=(),
        schema_sha256=schema,
        parameter_norm=5.0,
    )


def test_only_a_checkpoint_that_names_other_tensors_is_a_reason_to_refuse(tmp_path: Path) -> None:
    model = task_get("tiny").model_build(CONFIG, tmp_path)
    for checkpoint in (None, manifest(None), manifest(schema_sha256(model))):
        schema_check(model, checkpoint)
    with pytest.raises(StateShapeError):
        schema_check(model, manifest("0" * 64))


def test_a_wrong_model_ends_the_trainer_with_a_remedy_and_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "swarm_enter", lambda *_: pytest.fail("it bothers peers"))
    session = TrainerSession(
        config=CONFIG,
        key=swarm_key_load_or_create(tmp_path / "swarm.key"),
        sign_metrics=lambda metrics: "",
        bootstrap_peers=(),
        min_epoch=3,
        artifacts=tmp_path,
        work_dir=tmp_path,
        micro_batch=8,
        checkpoint=manifest("0" * 64),
    )
    with pytest.raises(ClientError) as caught:
        trainer_run(session, ui=SilentUI())
    error = caught.value
    assert (error.code, error.exit_code) == (ErrorCode.MODEL_MISMATCH, ExitCode.USAGE)
    assert "Install the version" in error.remedy
    status = status_read(tmp_path / "status.json")
    assert status is not None
