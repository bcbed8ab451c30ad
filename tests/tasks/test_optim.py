"""LAMB, its parameter groups and its schedule."""

import warnings
from pathlib import Path

import pytest
import torch

from tests.swarm.peers import config_make
from training.protocol.config import OptimizerConfig
from training.tasks.optim import learning_rate_share, optimizer_build, scheduler_build
from training.tasks.registry import task_get

LAMB = OptimizerConfig(
    learning_rate=0.1, warmup_epochs=4, total_epochs=104, min_learning_rate_ratio=0.2
)


def model() -> torch.nn.Module:
    return task_get("tiny").model_build(config_make(), Path())


def test_the_rate_rises_falls_and_stops_at_its_floor() -> None:
    shares = [learning_rate_share(LAMB, epoch) for epoch in (0, 1, 3, 4, 54, 84, 104, 999)]
    assert shares == pytest.approx([0.2, 0.4, 0.8, 1.0, 0.5, 0.2, 0.2, 0.2])


def test_without_warm_up_the_first_epoch_has_the_whole_rate() -> None:
    assert learning_rate_share(OptimizerConfig(total_epochs=10), 0) == 1.0
    assert learning_rate_share(OptimizerConfig(total_epochs=10), 10) == 0.0


def test_biases_and_normalisation_are_not_decayed() -> None:
    tiny = model()
    groups, _ = optimizer_build(LAMB, tiny)
    names = {id(parameter): name for name, parameter in tiny.named_parameters()}
    decayed, plain = ({names[id(p)] for p in group["params"]} for group in groups)
    assert [group["weight_decay"] for group in groups] == [LAMB.weight_decay, 0.0]
    assert decayed == {"0.weight", "3.weight"}
    assert plain == {"0.bias", "1.weight", "1.bias", "3.bias"}


@pytest.mark.parametrize("name", ["lamb", "sgd"])
def test_making_an_optimizer_changes_no_parameter(name: str) -> None:
    tiny = model()
    before = [parameter.detach().clone() for parameter in tiny.parameters()]
    groups, factory = optimizer_build(LAMB.model_copy(update={"name": name}), tiny)
    factory(groups)
    pairs = zip(before, tiny.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert all(parameter.grad is None for parameter in tiny.parameters())


def test_lamb_has_all_its_state_before_the_first_step() -> None:
    groups, factory = optimizer_build(LAMB, model())
    optimizer = factory(groups)
    fresh = optimizer.state_dict()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    used = optimizer.state_dict()
    assert [set(state) for state in fresh["state"].values()] == [
        set(state) for state in used["state"].values()
    ]
    assert [group["step"] for group in fresh["param_groups"]] != [
        group["step"] for group in used["param_groups"]
    ]


def test_a_schedule_that_jumps_to_a_downloaded_epoch_warns_of_nothing() -> None:
    groups, factory = optimizer_build(LAMB, model())
    optimizer = factory(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler = scheduler_build(LAMB)(optimizer)
        for _ in range(54):
            scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


def test_a_large_gradient_is_clipped_to_the_norm() -> None:
    results = []
    for scale in (10.0, 10_000.0):
        tiny = model()
        groups, factory = optimizer_build(LAMB, tiny)
        optimizer = factory(groups)
        for parameter in tiny.parameters():
            parameter.grad = torch.full_like(parameter, scale)
        optimizer.step()
        results.append(optimizer.state[next(tiny.parameters())]["exp_avg"].clone())
    assert torch.allclose(results[0], results[1], rtol=1e-4)
