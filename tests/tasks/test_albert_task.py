"""The albert task: a real AlbertForPreTraining, its loss, and the demo run's sizes."""

import hashlib
from itertools import islice
from pathlib import Path

import pytest
import torch
from transformers import AlbertForPreTraining

from tests.tasks import demo
from tests.tasks.test_albert_data import DOCUMENTS, TOKENIZER
from training.protocol.config import Artifact, RunConfig, TaskConfig
from training.tasks.albert.params import AlbertParams
from training.tasks.albert.samples import IGNORED
from training.tasks.albert.tokenizer import tokenizer_write
from training.tasks.registry import task_get
from training.tasks.task import TaskError

ALBERT = task_get("albert")
SMALL = {
    "hidden_size": 32,
    "embedding_size": 16,
    "layers": 2,
    "heads": 2,
    "intermediate_size": 64,
    "vocab_size": 60,
    "sequence_length": 32,
    "classifier_dropout": 0.0,
    "source": "text-files",
    "files": ["corpus.txt"],
}


def small_config(folder: Path, **params: object) -> RunConfig:
    tokenizer_write(TOKENIZER, folder / "tokenizer.json")
    text = "\n\n".join("\n".join(document) for document in DOCUMENTS)
    (folder / "corpus.txt").write_text(text)
    artifacts = []
    for name in ("tokenizer.json", "corpus.txt"):
        data = (folder / name).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        artifacts.append(Artifact(name=name, sha256=digest, size=len(data)))
    task = TaskConfig(name="albert", params=SMALL | params)  # type: ignore[arg-type]
    return RunConfig(run="bees", title="Bees", version=1, task=task, artifacts=tuple(artifacts))


def test_the_loss_is_that_of_transformers_when_every_sample_has_as_many_masks(
    tmp_path: Path,
) -> None:
    config = small_config(tmp_path)
    model = ALBERT.model_build(config, tmp_path)
    assert isinstance(model, AlbertForPreTraining)
    for batch in islice(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8), 5):
        masks = (batch["labels"] != IGNORED).sum(dim=1)
        rows = masks == masks.mode().values
        same = {name: tensor[rows] for name, tensor in batch.items()}
        loss, samples = ALBERT.loss(model, same)
        assert samples == int(rows.sum())
        assert loss.item() == pytest.approx(model(**same).loss.item(), rel=1e-5)


def test_the_loss_does_not_depend_on_how_samples_are_spread_over_batches(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    model = ALBERT.model_build(config, tmp_path)
    batch = next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=12))
    whole, _ = ALBERT.loss(model, batch)
    parts = 0.0
    for rows in (slice(0, 3), slice(3, 12)):
        loss, samples = ALBERT.loss(model, {name: t[rows] for name, t in batch.items()})
        parts += loss.item() * samples
    assert parts / 12 == pytest.approx(whole.item(), rel=1e-5)


def test_a_small_albert_learns(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    model = ALBERT.model_build(config, tmp_path)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for batch in islice(ALBERT.batches(config, tmp_path, seed=1, micro_batch=16), 60):
        loss, _ = ALBERT.loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_every_parameter_gets_a_gradient(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    model = ALBERT.model_build(config, tmp_path)
    loss, _ = ALBERT.loss(model, next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8)))
    loss.backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == []


def test_without_sentence_order_only_words_are_guessed(tmp_path: Path) -> None:
    config = small_config(tmp_path, sop=False)
    model = ALBERT.model_build(config, tmp_path)
    loss, _ = ALBERT.loss(model, next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8)))
    assert 3.5 < loss.item() < 4.6


def test_a_missing_or_changed_artifact_is_refused(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    (tmp_path / "corpus.txt").write_text("another text")
    with pytest.raises(TaskError, match=r"corpus\.txt.*damaged"):
        next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8))
    without = config.model_copy(update={"artifacts": ()})
    with pytest.raises(TaskError, match="no artifact"):
        next(ALBERT.batches(without, tmp_path, seed=1, micro_batch=8))


def test_artifacts_are_found_by_content_hash_too(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    for artifact in config.artifacts:
        (tmp_path / artifact.name).rename(tmp_path / artifact.sha256)
    assert next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8))["labels"].shape == (8, 32)


def test_a_vocabulary_smaller_than_the_tokenizer_is_refused(tmp_path: Path) -> None:
    config = small_config(tmp_path, vocab_size=20)
    with pytest.raises(TaskError, match="vocab_size is 20"):
        next(ALBERT.batches(config, tmp_path, seed=1, micro_batch=8))


@pytest.mark.parametrize(
    "params",
    [
        {"heads": 3},
        {"layers": 3, "groups": 2},
        {"files": []},
        {"source": "python-docs"},
        {"unknown": 1},
    ],
)
def test_params_that_cannot_work_are_refused(tmp_path: Path, params: dict[str, object]) -> None:
    with pytest.raises(TaskError, match="do not fit"):
        ALBERT.model_build(small_config(tmp_path, **params), tmp_path)


def test_the_defaults_are_albert_base() -> None:
    params = AlbertParams()
    assert (params.hidden_size, params.layers, params.vocab_size) == (768, 12, 30_000)


def test_the_demo_has_the_promised_size(tmp_path: Path) -> None:
    config = RunConfig(run="python-docs", title="Demo", version=1, task=demo.TASK)
    model = ALBERT.model_build(config, tmp_path)
    assert 1_000_000 <= sum(p.numel() for p in model.parameters()) <= 2_000_000
