"""Model and optimizer as safetensors files."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from training.protocol.config import OptimizerConfig
from training.swarm.state_files import (
    MODEL_FILE,
    OPTIMIZER_FILE,
    StateError,
    finite_check,
    state_load,
    state_save,
    values_check,
)
from training.tasks.optim import optimizer_build


class Tied(torch.nn.Module):
    """Two layers that share their weight, as ALBERT's embedding and decoder do."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.one = torch.nn.Linear(width, width)
        self.two = torch.nn.Linear(width, width)
        self.two.weight = self.one.weight
        self.register_buffer("seen", torch.tensor([1.0, 2.0]))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(inputs).tanh())


def trained(*, seed: int, steps: int = 3, name: str = "lamb", width: int = 5):  # type: ignore[no-untyped-def]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Tied(width)
        config = OptimizerConfig(name=name, learning_rate=0.1)  # type: ignore[arg-type]
        groups, factory = optimizer_build(config, model)
        optimizer = factory(groups)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(8, width)).square().mean().backward()
            optimizer.step()
    return model, optimizer


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", ["lamb", "sgd"])
def test_what_was_saved_trains_on_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    model, optimizer = trained(seed=1, name=name)
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    other, other_optimizer = trained(seed=2, name=name)
    assert not same(model, other)
    state_load(tmp_path, model=other, optimizer=other_optimizer)
    assert same(model, other)
    assert other.one.weight is other.two.weight
    inputs = torch.ones(4, 5)
    for each, its_optimizer in ((model, optimizer), (other, other_optimizer)):
        its_optimizer.zero_grad()
        each(inputs).square().mean().backward()
        its_optimizer.step()
    assert same(model, other)


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    model, optimizer = trained(seed=1)
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    names = load_file(str(tmp_path / MODEL_FILE))
    assert sum("weight" in name for name in names) == 1


def test_small_second_moments_survive(tmp_path: Path) -> None:
    model, optimizer = trained(seed=1)
    parameter = optimizer.param_groups[0]["params"][0]
    optimizer.state[parameter]["exp_avg_sq"].fill_(1e-20)
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    other, other_optimizer = trained(seed=2)
    state_load(tmp_path, model=other, optimizer=other_optimizer)
    loaded = other_optimizer.state[other_optimizer.param_groups[0]["params"][0]]
    assert float(loaded["exp_avg_sq"].min()) == pytest.approx(1e-20)


@pytest.mark.parametrize(
    "damage", ["cut model", "cut optimizer", "no optimizer", "not finite", "no metadata"]
)
def test_a_damaged_state_is_refused_and_the_optimizer_stays(tmp_path: Path, damage: str) -> None:
    model, optimizer = trained(seed=1)
    if damage == "not finite":
        with torch.no_grad():
            model.one.bias[0] = float("nan")
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    model_file, optimizer_file = tmp_path / MODEL_FILE, tmp_path / OPTIMIZER_FILE
    if damage == "cut model":
        model_file.write_bytes(model_file.read_bytes()[:100])
    elif damage == "cut optimizer":
        optimizer_file.write_bytes(optimizer_file.read_bytes()[:100])
    elif damage == "no optimizer":
        optimizer_file.unlink()
    elif damage == "no metadata":
        save_file({"0.exp_avg": torch.zeros(2)}, str(optimizer_file))
    other, other_optimizer = trained(seed=2)
    before = [v.clone() for s in other_optimizer.state.values() for v in s.values()]
    with pytest.raises(StateError):
        state_load(tmp_path, model=other, optimizer=other_optimizer)
    after = [v for s in other_optimizer.state.values() for v in s.values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    model, optimizer = trained(seed=1, width=6)
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    other, other_optimizer = trained(seed=2)
    with pytest.raises(StateError):
        state_load(tmp_path, model=other, optimizer=other_optimizer)


def test_an_optimizer_of_other_shapes_is_refused(tmp_path: Path) -> None:
    model, optimizer = trained(seed=1)
    state_save(tmp_path, model=model, optimizer=optimizer, epoch=7)
    wide, wide_optimizer = trained(seed=1, width=6)
    state_save(tmp_path, model=wide, optimizer=wide_optimizer, epoch=7)
    state_save(tmp_path / "..", model=model, optimizer=optimizer, epoch=7)
    (tmp_path.parent / MODEL_FILE).replace(tmp_path / MODEL_FILE)
    other, other_optimizer = trained(seed=2)
    with pytest.raises(StateError, match="does not fit"):
        state_load(tmp_path, model=other, optimizer=other_optimizer)


def test_infinite_values_are_refused() -> None:
    finite_check([torch.ones(3), torch.tensor(2)])
    values_check([1, 0.5, "text", None, [1.0]])
    with pytest.raises(StateError):
        finite_check([torch.tensor([1.0, float("inf")])])
    with pytest.raises(StateError):
        values_check([0.5, float("nan")])
