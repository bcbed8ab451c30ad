"""The contract itself: codes, states, and the bytes of each message."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from training.protocol import api, claims, config, metrics
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.errors import ERRORS, ErrorCode
from training.protocol.names import metrics_key, progress_key
from training.protocol.states import (
    RUN_TRANSITIONS,
    WORKER_TRANSITIONS,
    PeerState,
    Reach,
    Role,
    RunState,
    WorkerState,
)

GOLDEN = Path(__file__).parent / "golden"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

SAMPLES: dict[str, BaseModel] = {
    "config": RunConfig(
        run="python-docs", title="Python docs", version=1, task=TaskConfig(name="albert")
    ),
    "pass": claims.PeerPass(
        sub="bob",
        device="d1",
        run="python-docs",
        lineage=1,
        peer_id="QmBob",
        key_thumbprint="0" * 64,
        role=Role.TRAINER,
    ),
    "metrics": metrics.PeerMetrics(
        run="python-docs",
        lineage=1,
        peer_id="QmBob",
        config_version=1,
        epoch=3,
        samples_accumulated=128,
        samples_total=1024,
        samples_per_second=12.5,
        loss=8.25,
        recent=(metrics.EpochSamples(epoch=2, samples=512),),
        rounds=(
            metrics.RoundSeen(epoch=2, group_size=3, weights={"QmAlice": 640, "QmCharlie": None}),
        ),
        taken_at=AT,
    ),
    "snapshot": metrics.SwarmSnapshot(
        run="python-docs",
        lineage=1,
        seq=7,
        taken_at=AT,
        epoch=3,
        samples_accumulated=128,
        samples_per_second=12.5,
        peers=(metrics.PeerObservation(key_thumbprint="0" * 64, seen_at=AT, reach=Reach.DIRECT),),
        finished_epochs=(
            metrics.EpochReport(
                epoch=2,
                finished_at=AT,
                work=(metrics.EpochWork(key_thumbprint="0" * 64, samples=512, recorded=512),),
                discarded=(metrics.EpochWork(key_thumbprint="1" * 64, samples=8, recorded=8),),
                accumulated=520,
            ),
        ),
    ),
    "checkpoint": claims.CheckpointManifest(
        run="python-docs",
        lineage=1,
        config_version=1,
        epoch=3,
        saved_at=AT,
        files=(claims.CheckpointFile(name="model.safetensors", sha256="0" * 64, size=1),),
    ),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_bytes_of_a_message_change_only_on_purpose(name: str) -> None:
    """Delete tests/protocol/golden/<name>.json and run again to accept a change."""
    file = GOLDEN / f"{name}.json"
    body = SAMPLES[name].model_dump(mode="json", by_alias=True)
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")
    assert json.loads(file.read_text()) == body


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_message_is_read_back_as_it_was_written(name: str) -> None:
    body = SAMPLES[name]
    assert type(body).model_validate_json(body.model_dump_json(by_alias=True)) == body


def test_what_others_wrote_is_read_tolerantly_and_what_we_sign_is_not() -> None:
    tolerant = json.loads(SAMPLES["metrics"].model_dump_json()) | {"added_later": 1}
    assert metrics.PeerMetrics.model_validate(tolerant) == SAMPLES["metrics"]
    strict = json.loads(SAMPLES["config"].model_dump_json()) | {"added_later": 1}
    with pytest.raises(ValidationError):
        RunConfig.model_validate(strict)


def test_numbers_that_are_not_finite_are_refused() -> None:
    body = SAMPLES["metrics"].model_dump() | {"loss": float("nan")}
    with pytest.raises(ValidationError):
        metrics.PeerMetrics.model_validate(body)


def test_every_error_code_has_a_status_a_title_and_a_remedy() -> None:
    assert set(ERRORS) == set(ErrorCode)
    for code in ErrorCode:
        assert 400 <= code.info.status < 600
        assert code.info.title
        assert code.info.remedy.endswith(".")


def test_transitions_lead_to_known_states_and_finished_runs_stay_finished() -> None:
    assert set(RUN_TRANSITIONS) == set(RunState)
    assert set(WORKER_TRANSITIONS) == set(WorkerState)
    assert RUN_TRANSITIONS[RunState.FINISHED] == {RunState.ARCHIVED}
    assert not RUN_TRANSITIONS[RunState.ARCHIVED]


def test_a_new_lineage_is_another_swarm() -> None:
    first = RunConfig(run="r", title="R", version=1, task=TaskConfig(name="albert"))
    second = first.model_copy(update={"lineage": 2})
    assert first.swarm_id == "r-1"
    assert metrics_key(first.swarm_id) == "r-1_metrics"
    assert progress_key(second.swarm_id) == "r-2_progress"


def test_the_pass_is_called_pass_on_the_wire() -> None:
    body = api.PassResponse(config_version=1, **{"pass": "token"})
    assert json.loads(body.model_dump_json(by_alias=True))["pass"] == "token"
    assert PeerState.TRAINING == "training"


@pytest.mark.parametrize("module", [api, claims, config, metrics])
def test_every_model_of_the_contract_explains_its_shape_as_json_schema(module: object) -> None:
    models = [m for m in vars(module).values() if isinstance(m, type) and issubclass(m, BaseModel)]
    assert models
    for model in models:
        assert model.model_json_schema()["type"] == "object"
