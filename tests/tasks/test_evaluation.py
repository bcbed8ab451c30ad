"""Evaluations ask each model the same questions, about what nobody trains on."""

import json
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from safetensors.torch import save_model

from tests.tasks.test_albert_data import DOCUMENTS
from tests.tasks.test_albert_task import small_config
from training.cli import main
from training.coordinator.checkpoints import CheckpointStore
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.tasks.albert.corpus import Corpus
from training.tasks.albert.text import documents_split, text_read
from training.tasks.evaluation import model_load
from training.tasks.registry import evaluation_get, task_get, tasks_list
from training.tasks.task import TaskError

CPU = torch.device("cpu")
TINY = RunConfig(run="small", title="Small", version=1, task=TaskConfig(name="tiny"))


def test_every_task_has_an_evaluation() -> None:
    for task in tasks_list():
        assert callable(evaluation_get(task.name))
    with pytest.raises(TaskError, match="no evaluation"):
        evaluation_get("unheard-of")


def trained(config: RunConfig, folder: Path, steps: int, rate: float) -> torch.nn.Module:
    task = task_get(config.task.name)
    model = task.model_build(config, folder)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for batch in islice(task.batches(config, folder, seed=3, micro_batch=64), steps):
        loss, _ = task.loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def test_a_trained_tiny_model_does_better_than_a_new_one(tmp_path: Path) -> None:
    ask = evaluation_get("tiny")
    new = ask(trained(TINY, tmp_path, 0, 0.1), TINY, tmp_path, samples=400, device=CPU)
    old = ask(trained(TINY, tmp_path, 150, 0.02), TINY, tmp_path, samples=400, device=CPU)
    assert old.metrics["loss"] < new.metrics["loss"] / 2
    assert old.metrics["accuracy"] > 0.8 > new.metrics["accuracy"]
    assert [e.text for e in old.examples] == [e.text for e in new.examples]


@pytest.fixture
def albert(tmp_path: Path) -> RunConfig:
    return small_config(tmp_path, held_out=0.4)


def test_albert_is_asked_for_hidden_words_and_the_order_of_sentences(
    albert: RunConfig, tmp_path: Path
) -> None:
    ask = evaluation_get("albert")
    model = trained(albert, tmp_path, 0, 0.0)
    first = ask(model, albert, tmp_path, samples=40, device=CPU)
    assert set(first.metrics) == {"mlm_loss", "mlm_accuracy", "sop_accuracy"}
    assert 3 < first.metrics["mlm_loss"] < 6, "about the logarithm of 60 pieces"
    assert 40 <= first.num_samples <= 72
    assert first == ask(model, albert, tmp_path, samples=40, device=CPU), "same questions"
    for example in first.examples:
        assert example.text.count("____") == len(example.guesses) > 0
        assert all(guess.hidden and guess.guess for guess in example.guesses)
    better = trained(albert, tmp_path, 60, 0.01)
    second = ask(better, albert, tmp_path, samples=40, device=CPU)
    assert second.metrics["mlm_loss"] < first.metrics["mlm_loss"]
    assert [e.text for e in second.examples] == [e.text for e in first.examples]
    hidden = [[guess.hidden for guess in e.guesses] for e in first.examples]
    assert hidden == [[guess.hidden for guess in e.guesses] for e in second.examples]


def texts(corpus: Corpus) -> set[bytes]:
    """Return the tokens of each document."""
    ends = corpus.pieces[corpus.documents]
    return {corpus.tokens[a:b].tobytes() for a, b in pairwise(ends)}


def test_nobody_trains_on_held_out_text(albert: RunConfig, tmp_path: Path) -> None:
    own = text_read(albert, tmp_path, is_held_out=False).corpus
    other = text_read(albert, tmp_path, is_held_out=True).corpus
    assert texts(own)
    assert texts(other)
    assert not texts(own) & texts(other)
    assert len(own.documents) + len(other.documents) - 2 == len(DOCUMENTS)


def test_a_run_that_holds_nothing_out_says_so(tmp_path: Path) -> None:
    config = small_config(tmp_path, held_out=0.0)
    model = task_get("albert").model_build(config, tmp_path)
    with pytest.raises(TaskError, match="no text of this run is held out") as problem:
        evaluation_get("albert")(model, config, tmp_path, samples=4, device=CPU)
    assert "held_out" in problem.value.remedy


documents = st.lists(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=3), min_size=1)


@given(documents, st.floats(0, 0.99), documents)
def test_a_documents_own_text_decides_where_it_belongs(
    some: list[list[str]], share: float, others: list[list[str]]
) -> None:
    train, held_out = documents_split(some, share)
    assert len(train) + len(held_out) == len(some)
    assert train, "there is always something to train on"
    mixed_train, mixed_held_out = documents_split([*others, *some], share)
    if mixed_held_out:
        assert all(document not in mixed_train for document in held_out)


def checkpoint_make(folder: Path, epoch: int = 3) -> Path:
    model = trained(TINY, folder, 0, 0.1)

    def signed(body: BaseModel, typ: str) -> str:
        return sign(
            body, typ=typ, key=key_generate(), issuer="x", lifetime=timedelta(days=1),
            now=datetime.now(UTC),
        )  # fmt: skip

    def write(target: Path) -> None:
        save_model(model, str(target / "model.safetensors"))

    (folder / "config.json").write_text(TINY.model_dump_json())
    store = CheckpointStore(folder / "checkpoints", config=TINY, sign=signed)
    return store.save(epoch, write, now=datetime.now(UTC)).path


def evaluate(folder: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    paths = ["--config", str(folder / "config.json"), "--checkpoint", str(path)]
    own = ["--home", str(folder / "home"), "--samples", "32", "--threads", "1"]
    code = main(["evaluate", "--json", *paths, *own])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_measures_a_checkpoint_and_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = evaluate(tmp_path, checkpoint_make(tmp_path), capsys)
    assert code == 0
    assert (answer["run"], answer["lineage"], answer["epoch"]) == ("small", 1, 3)
    assert answer["num_samples"] == 32
    assert set(answer["metrics"]) == {"loss", "accuracy"}
    assert answer["seconds"] > 0


def test_a_damaged_or_foreign_checkpoint_is_refused_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint_make(tmp_path)
    file = path / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"\x00")
    code, answer = evaluate(tmp_path, path, capsys)
    assert code == 2
    assert "damaged" in answer["error"]["detail"]
    assert answer["error"]["remedy"]
    with pytest.raises(TaskError, match="does not fit the run's model"):
        model_load(torch.nn.Linear(2, 2), file)
    code, answer = evaluate(tmp_path, tmp_path, capsys)
    assert code == 2


def test_a_model_with_values_that_are_not_finite_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with torch.no_grad():
        model.weight[0, 0] = float("nan")
    save_model(model, str(tmp_path / "m.safetensors"))
    with pytest.raises(TaskError, match="not finite"):
        model_load(torch.nn.Linear(2, 2), tmp_path / "m.safetensors")
