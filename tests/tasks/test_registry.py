"""Tasks by name, and what every task promises."""

from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.swarm.peers import config_make
from training.protocol.config import RunConfig, TaskConfig
from training.tasks.registry import task_get, tasks_list
from training.tasks.task import TaskError


def tiny(**params: int) -> RunConfig:
    return config_make().model_copy(update={"task": TaskConfig(name="tiny", params=dict(params))})


def test_tasks_are_found_by_name() -> None:
    assert [task.name for task in tasks_list()] == ["albert", "tiny"]
    assert all(task_get(task.name) is task for task in tasks_list())


def test_an_unknown_task_is_refused_with_a_remedy() -> None:
    with pytest.raises(TaskError, match="no task 'swav'") as caught:
        task_get("swav")
    assert "Install" in caught.value.remedy


def test_parameters_that_do_not_fit_are_refused_in_a_sentence() -> None:
    with pytest.raises(TaskError, match="tiny do not fit") as caught:
        task_get("tiny").model_build(tiny(layers=3), Path())
    assert "config" in caught.value.remedy


def test_every_peer_starts_from_the_same_weights() -> None:
    task = task_get("tiny")
    torch.manual_seed(1)
    one = task.model_build(tiny(), Path())
    torch.manual_seed(2)
    other = task.model_build(tiny(), Path())
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    changed = task.model_build(tiny().model_copy(update={"seed": 6}), Path())
    assert not torch.equal(next(one.parameters()), next(changed.parameters()))


def test_building_a_model_leaves_the_random_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    task_get("tiny").model_build(tiny(), Path())
    assert torch.equal(torch.rand(4), expected)


def test_each_device_has_its_own_order_of_the_same_data() -> None:
    task = task_get("tiny")

    def first(seed: int) -> torch.Tensor:
        return next(task.batches(tiny(), Path(), seed=seed, micro_batch=4))["inputs"]

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def test_the_tiny_task_learns_in_seconds() -> None:
    task, config = task_get("tiny"), tiny()
    model = task.model_build(config, Path())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for batch in islice(task.batches(config, Path(), seed=1, micro_batch=64), 60):
        loss, samples = task.loss(model, batch)
        assert samples == 64
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
