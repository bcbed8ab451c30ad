"""What the site knows of tasks is what the tasks are."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from training.protocol.config import RunConfig
from training.tasks.registry import task_get, tasks_list
from web.runs.catalogue import params_default, presets_built_in, tasks_built_in
from web.runs.model_size import model_size

FOLDER = Path(__file__).parents[2] / "web" / "runs" / "catalogue"


def test_the_site_knows_every_built_in_task_as_it_is() -> None:
    assert set(tasks_built_in()) == {task.name for task in tasks_list()}
    for task in tasks_list():
        entry = json.loads((FOLDER / f"task-{task.name}.json").read_text())
        assert entry["params_schema"] == task.params_model.model_json_schema(), (
            "run scripts/catalogue_write.py"
        )
        assert entry["summary"] == task.summary


@pytest.mark.parametrize("preset", presets_built_in(), ids=lambda p: p.key)
def test_the_parameters_of_every_preset_fit_the_task_itself(preset: Any) -> None:
    task = preset.draft["task"]
    task_get(task["name"]).params_model.model_validate(task["params"])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("tiny", {"hidden": 50, "classes": 7}),
        ("albert", {"hidden_size": 64, "embedding_size": 32, "layers": 4, "groups": 2, "heads": 2,
                    "intermediate_size": 128, "vocab_size": 500, "sequence_length": 32}),
    ],
)  # fmt: skip
def test_the_size_of_a_model_is_exact(name: str, params: dict[str, Any], tmp_path: Path) -> None:
    body = {"run": "x", "title": "x", "version": 1, "task": {"name": name, "params": params}}
    model = task_get(name).model_build(RunConfig.model_validate(body), tmp_path)
    defaults = params_default(tasks_built_in()[name].params_schema)
    size = model_size(name, defaults | params)
    assert size is not None
    assert isinstance(model, torch.nn.Module)
    assert size.num_parameters == sum(p.numel() for p in model.parameters())


def test_a_task_that_the_site_does_not_know_has_no_size() -> None:
    assert model_size("custom", {}) is None
    assert model_size("tiny", {"features": "many"}) is None
