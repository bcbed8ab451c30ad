"""What we changed in hivemind's optimizer and averagers, each with what it prevents."""

import math
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import hivemind
import pytest
import torch
from hivemind.averaging.allreduce import AveragingMode
from hivemind.optim import grad_averager, state_averager

from tests.swarm.peers import Peer, config_make, dht_peer, hiveminds_own, training_peer
from training.swarm.averaging import GradientAverager, TrainingStateAverager
from training.swarm.optimizer import SwarmOptimizer

pytestmark = pytest.mark.swarm


def parts(peer: Peer) -> tuple[torch.nn.Module, SwarmOptimizer]:
    assert peer.model is not None
    assert peer.optimizer is not None
    return peer.model, peer.optimizer


def gradients_set(model: torch.nn.Module, value: float) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, value)


def test_handlers_keep_the_names_that_other_trainers_call() -> None:
    for ours, theirs in (
        (GradientAverager, grad_averager.GradientAverager),
        (TrainingStateAverager, state_averager.TrainingStateAverager),
    ):
        assert issubclass(ours, theirs)
        assert ours.__name__ == theirs.__name__


def test_ctrl_c_still_works_with_an_averager_running(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with training_peer(tmp_path, config_make()):
        assert signal.getsignal(signal.SIGINT) is before


def test_the_mean_gradient_is_per_sample_also_for_unlike_micro_batches(tmp_path: Path) -> None:
    with training_peer(tmp_path, config_make()) as peer:
        model, optimizer = parts(peer)
        averager = optimizer.grad_averager
        for value, samples in ((1.0, 4), (3.0, 12), (2.0, 16)):
            gradients_set(model, value)
            averager.accumulate_grads_(samples)
        averager.load_accumulators_into_averager_()
        expected = (1.0 * 4 + 3.0 * 12 + 2.0 * 16) / 32
        with averager.get_tensors() as tensors:
            assert all(torch.allclose(t, torch.full_like(t, expected)) for t in tensors)


def test_alone_an_epoch_ends_without_waiting_for_anybody(tmp_path: Path) -> None:
    with training_peer(tmp_path, config_make(target_batch_size=32)) as peer:
        model, optimizer = parts(peer)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        started = time.monotonic()
        for _ in range(3):
            gradients_set(model, 1.0)
            optimizer.step(batch_size=32)
        assert time.monotonic() - started < 3
        assert [f.epoch for f in optimizer.finished] == [0, 1, 2]
        assert all((f.samples, f.group_size) == (32, 1) for f in optimizer.finished)
        pairs = zip(before, model.parameters(), strict=True)
        assert not any(torch.equal(a, b) for a, b in pairs)


def test_a_round_that_finds_no_group_ends_soon_and_uses_the_own_gradients(
    tmp_path: Path,
) -> None:
    config = config_make(target_batch_size=32, matchmaking_seconds=1.0, request_timeout_seconds=0.5)
    with training_peer(tmp_path, config) as peer:
        model, optimizer = parts(peer)
        gradients_set(model, 1.0)
        optimizer.tracker.global_progress.num_peers = 2  # a peer that has just died
        before = [parameter.detach().clone() for parameter in model.parameters()]
        started = time.monotonic()
        optimizer.step(batch_size=32)
        assert time.monotonic() - started < 8, "the averaging timeout is 15 s"
        (finished,) = optimizer.finished
        assert (finished.samples, finished.group_size) == (32, 1)
        assert 0.5 < finished.times.matchmaking < 8, "the training stood still for it"
        assert finished.times.averaging == 0.0
        pairs = zip(before, model.parameters(), strict=True)
        assert not any(torch.equal(a, b) for a, b in pairs)


def test_loading_a_state_that_nobody_has_returns(tmp_path: Path) -> None:
    with training_peer(tmp_path, config_make()) as peer:
        _, optimizer = parts(peer)
        started = time.monotonic()
        assert optimizer.load_state_from_peers()
        optimizer.tracker.global_progress.epoch = 9
        assert not optimizer.load_state_from_peers()
        assert optimizer.is_out_of_sync
        assert time.monotonic() - started < 10


def test_a_newcomer_takes_weights_statistics_and_schedule(tmp_path: Path) -> None:
    config = config_make(target_batch_size=32)
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(tmp_path / "alice", config, entrance.addresses) as alice,
    ):
        model, optimizer = parts(alice)
        for _ in range(3):
            gradients_set(model, 1.0)
            optimizer.step(batch_size=32)
        with training_peer(tmp_path / "bob", config, entrance.addresses) as bob:
            copy, newcomer = parts(bob)
            end = time.monotonic() + 20
            while newcomer.local_epoch < 3:
                assert time.monotonic() < end
                newcomer.load_state_from_peers()
            pairs = list(zip(model.parameters(), copy.parameters(), strict=True))
            assert all(torch.equal(a, b) for a, b in pairs)
            rates = [o.opt.param_groups[0]["lr"] for o in (optimizer, newcomer)]
            assert rates[0] == rates[1]
            for one, other in zip(optimizer.parameters, newcomer.parameters, strict=True):
                states = optimizer.opt.state[one], newcomer.opt.state[other]
                assert torch.equal(states[0]["exp_avg"], states[1]["exp_avg"])


def test_a_state_that_is_not_finite_is_not_taken_over(tmp_path: Path) -> None:
    config = config_make(target_batch_size=32)
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(tmp_path / "mallory", config, entrance.addresses) as mallory,
        training_peer(tmp_path / "bob", config, entrance.addresses) as bob,
    ):
        _, broken = parts(mallory)
        with torch.no_grad(), broken.state_averager.lock_averaged_tensors:
            broken.parameters[0].fill_(math.nan)
        broken.state_averager.local_epoch = 5
        broken.state_averager.state_sharing_priority = 5
        time.sleep(1)
        model, optimizer = parts(bob)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer.load_state_from_peers()
        pairs = zip(before, model.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
        assert optimizer.local_epoch == 0


def test_leaving_in_the_middle_of_a_round_is_quick(tmp_path: Path) -> None:
    config = config_make(target_batch_size=32, matchmaking_seconds=5.0)
    with training_peer(tmp_path, config) as peer:
        model, optimizer = parts(peer)
        gradients_set(model, 1.0)
        optimizer.tracker.global_progress.num_peers = 2
        optimizer.leaving.set()
        started = time.monotonic()
        optimizer.step(batch_size=32)
        optimizer.shutdown()
        assert time.monotonic() - started < 8


async def test_a_round_knows_who_only_assists(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[AveragingMode, ...]] = []

    async def watch(self: object, *args: object, modes: tuple[AveragingMode, ...]) -> None:
        seen.append(modes)

    parent = hiveminds_own(GradientAverager)
    monkeypatch.setattr(parent, "_run_allreduce_inplace_", watch)
    averager = GradientAverager.__new__(GradientAverager)
    averager._parent_pid = 0  # it has no process that would have to be ended
    modes = (AveragingMode.NODE, AveragingMode.AUX, AveragingMode.CLIENT)
    gathered = [GradientAverager.serializer.dumps([None, mode.value, b""]) for mode in modes]
    await averager._run_allreduce_inplace_([], SimpleNamespace(gathered=gathered))
    assert seen == [modes]


@pytest.mark.parametrize(
    ("num_peers", "is_there", "samples", "size"),
    [(2, True, 24, 0), (2, False, 24, 1), (1, True, 24, 1)],
)
def test_samples_count_without_a_round_only_when_nobody_is_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    num_peers: int,
    is_there: bool,
    samples: int,
    size: int,
) -> None:
    """A planned round may have run out while this peer slept: hivemind then makes none."""
    with training_peer(tmp_path, config_make()) as peer:
        model, optimizer = parts(peer)
        gradients_set(model, 1.0)
        optimizer.grad_averager.accumulate_grads_(samples)
        monkeypatch.setattr(hivemind.Optimizer, "_update_global_epoch", lambda self, scaler: None)
        monkeypatch.setattr(SwarmOptimizer, "num_peers", num_peers)
        monkeypatch.setattr(SwarmOptimizer, "_has_living_peers", lambda self: is_there)
        optimizer._update_global_epoch(None)
        (finished,) = optimizer.finished
        assert (finished.samples, finished.group_size) == (samples if size else 0, size)
