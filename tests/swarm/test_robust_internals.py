"""What guarded averaging relies on inside hivemind 1.1.12. If a test here fails, hivemind has
moved: read the change before anything else, since a guard that no longer overrides is no guard."""

import hashlib
import importlib.metadata
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hivemind.averaging import DecentralizedAverager, averager
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.partition import TensorPartContainer, TensorPartReducer
from hivemind.optim import grad_averager, optimizer, state_averager

from training.swarm import robust
from training.swarm.averaging import GradientAverager, TrainingStateAverager

READ = {
    AllReduceRunner.__init__: "597a0c8dbbea",
    AllReduceRunner.run: "d145a0e368a5",
    AllReduceRunner._communicate_with_peer: "d910885e9727",
    AllReduceRunner.rpc_aggregate_part: "c66765f4ad58",
    AllReduceRunner._accumulate_parts_streaming: "6c5a3c726606",
    AllReduceRunner._ban_sender: "3a3d52ad781b",
    AllReduceRunner.finalize: "4e759939d641",
    TensorPartContainer.__init__: "b652a9b72673",
    TensorPartContainer.register_processed_part: "ff5ebad6141c",
    TensorPartContainer.register_failed_reducer: "89b41b9d7f22",
    TensorPartContainer.iterate_output_tensors: "3bc3c7e743c4",
    TensorPartReducer.__init__: "9ebe1038f511",
    TensorPartReducer.reset_accumulators: "5d3dc36f344a",
    TensorPartReducer.accumulate_part: "1d64a8bd7705",
    TensorPartReducer.on_sender_failed: "8a7de53789ff",
    TensorPartReducer.check_current_part_finished: "ec9b059c42f3",
    TensorPartReducer.finalize: "dded462a1187",
    DecentralizedAverager._run_allreduce_inplace_: "914d57cffc7d",
    DecentralizedAverager._aggregate_with_group: "c297d8a435ce",
    DecentralizedAverager.rpc_aggregate_part: "06ad9597d588",
    DecentralizedAverager.rpc_download_state: "fd2f6f19e7d2",
    DecentralizedAverager._load_state_from_peers: "fe7b419d01ce",
    grad_averager.GradientAverager.step: "9d556a76d4a8",
    grad_averager.GradientAverager.load_accumulators_into_averager_: "916123f43baf",
    grad_averager.GradientAverager.reset_accumulated_grads_: "9222c7c084c9",
    state_averager.TrainingStateAverager._do: "0b1896170cc6",
    state_averager.TrainingStateAverager.get_current_state: "d2ee431a0a4b",
    state_averager.TrainingStateAverager.load_state_from_peers: "e4d647a9ea78",
    optimizer.Optimizer._update_global_epoch: "03a36523a3fc",
    optimizer.Optimizer._begin_averaging_gradients: "f17d8bb258a0",
    optimizer.Optimizer._average_gradients_and_load_into_optimizer: "d95bb5ebc061",
    optimizer.Optimizer._load_local_gradients_into_optimizer: "a87c64b6e88b",
    optimizer.Optimizer._tag_along_with_zero_weight: "a3181486ff4e",
}
"""The functions whose text ours were written against, with the beginning of its hash."""


def digest(function: Callable[..., Any]) -> str:
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:12]


def test_hivemind_is_the_version_whose_insides_were_read() -> None:
    assert importlib.metadata.version("hivemind") == "1.1.12"


@pytest.mark.parametrize("function", READ, ids=lambda function: function.__qualname__)
def test_what_was_read_has_not_moved(function: Callable[..., Any]) -> None:
    assert digest(function) == READ[function]


def test_rounds_are_made_by_the_name_that_is_replaced() -> None:
    assert averager.AllReduceRunner is robust.runner_make
    source = inspect.getsource(DecentralizedAverager._run_allreduce_inplace_)
    assert "runner = AllReduceRunner(" in source


def test_what_a_trainer_imports_replaces_it() -> None:
    """In a process of its own: this one has imported what a trainer may not."""
    code = (
        "import training.swarm.optimizer\n"
        "from hivemind.averaging import averager\n"
        "assert averager.AllReduceRunner.__module__ == 'training.swarm.robust'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (robust.GuardedReducer, TensorPartReducer),
        (robust.GuardedContainer, TensorPartContainer),
        (robust.GuardedAllReduce, AllReduceRunner),
    ],
)
def test_every_override_overrides_something(ours: type[Any], theirs: type[Any]) -> None:
    own = {"_average", "_is_plausible", "_most"}
    names = {name for name, value in vars(ours).items() if callable(value)} - own
    assert names
    for name in names:
        assert hasattr(theirs, name), f"{theirs.__name__} has no {name}"
        if name != "__init__":
            assert inspect.iscoroutinefunction(getattr(ours, name)) == inspect.iscoroutinefunction(
                getattr(theirs, name)
            )


@pytest.mark.parametrize("ours", [GradientAverager, TrainingStateAverager])
def test_both_averagers_hand_their_guard_to_every_round(ours: type[Any]) -> None:
    assert "_run_allreduce_inplace_" in vars(ours)
    assert 'kwargs["guard"]' in inspect.getsource(vars(ours)["_run_allreduce_inplace_"])
