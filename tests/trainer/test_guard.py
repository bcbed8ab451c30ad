"""What is not finite stays out of sums, weights and averages."""

import math
import threading

import pytest
import torch

from training.swarm.averaging import is_finite
from training.trainer.guard import WeightGuard, gradients_are_finite

BROKEN = [math.nan, math.inf, -math.inf]


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))


def step_once(model: torch.nn.Module, optimizer: torch.optim.Optimizer, scale: float = 1) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, scale)
    optimizer.step()


@pytest.mark.parametrize("value", BROKEN)
def test_one_bad_number_among_many_is_seen(value: float) -> None:
    tensors = [torch.ones(100), torch.ones(3, 7)]
    assert is_finite(tensors)
    tensors[1][2, 3] = value
    assert not is_finite(tensors)


def test_nothing_at_all_is_finite() -> None:
    assert is_finite([])


@pytest.mark.parametrize("value", BROKEN)
def test_a_micro_step_with_a_bad_loss_or_gradient_does_not_count(value: float) -> None:
    model = net()
    model(torch.ones(1, 4)).sum().backward()
    assert gradients_are_finite(model, 1.0)
    assert not gradients_are_finite(model, value)
    gradient = next(model.parameters()).grad
    assert gradient is not None
    gradient[0, 0] = value
    assert not gradients_are_finite(model, 1.0)


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.SGD])
def test_a_step_that_breaks_the_weights_is_undone(make: type[torch.optim.Optimizer]) -> None:
    model = net()
    optimizer = make(model.parameters(), lr=0.1)  # type: ignore[call-arg]
    step_once(model, optimizer)
    guard = WeightGuard(optimizer, threading.Lock())
    step_once(model, optimizer)
    good = [parameter.detach().clone() for parameter in model.parameters()]
    step_once(model, optimizer, scale=math.nan)
    assert guard.num_restored == 1
    assert all(torch.equal(a, b) for a, b in zip(good, model.parameters(), strict=True))
    step_once(model, optimizer)
    assert is_finite([parameter.detach() for parameter in model.parameters()])
    assert guard.num_restored == 1


def test_statistics_are_put_back_with_the_weights() -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    step_once(model, optimizer)
    WeightGuard(optimizer, threading.Lock())
    step_once(model, optimizer, scale=math.inf)
    statistics = [state["exp_avg_sq"] for state in optimizer.state.values()]
    assert is_finite(statistics)


def test_what_others_averaged_in_is_found_and_replaced() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = WeightGuard(optimizer, threading.Lock())
    assert guard.check()
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    assert not guard.check()
    assert guard.check()


def test_a_downloaded_state_becomes_the_one_to_go_back_to() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = WeightGuard(optimizer, threading.Lock())
    first = next(model.parameters())
    with torch.no_grad():
        first.fill_(7.0)
    guard.keep()
    with torch.no_grad():
        first.fill_(math.nan)
    guard.check()
    assert (first == 7.0).all()


def test_a_closed_guard_leaves_the_optimizer_alone() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = WeightGuard(optimizer, threading.Lock())
    guard.close()
    step_once(model, optimizer, scale=math.nan)
    assert guard.num_restored == 0
