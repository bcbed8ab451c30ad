"""Whoever takes part, the result is that of ordinary training on all samples together."""

import threading
import time
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
import torch

from tests.swarm.peers import Peer, config_make, dht_peer, training_peer
from training.protocol.config import OptimizerConfig, RunConfig
from training.tasks.optim import optimizer_build, scheduler_build
from training.tasks.registry import task_get

UPDATES = 6
TOLERANCE = 1e-5
Counted = dict[int, list[tuple[int, int]]]
"""By epoch: the micro-batches (seed, samples) that entered its average."""


class Trainee(threading.Thread):
    """Trains a peer at its own pace and notes which micro-batches counted in which epoch."""

    def __init__(self, peer: Peer, config: RunConfig, *, first_seed: int, samples: int) -> None:
        super().__init__(daemon=True)
        self.peer, self.config, self.samples = peer, config, samples
        self.seeds = count(first_seed)
        self.counted: Counted = {}
        self.group_sizes: list[int] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._train()
        except Exception as error:  # noqa: BLE001 - the test's thread raises it
            self.error = error

    def _train(self) -> None:
        optimizer, model, waiting = self.peer.optimizer, self.peer.model, []
        assert optimizer is not None
        assert model is not None
        while len(self.group_sizes) < UPDATES:
            seed = next(self.seeds)
            loss = batch_loss(model, self.config, seed, self.samples)
            loss.backward()
            waiting.append((seed, self.samples))
            optimizer.step(batch_size=self.samples)
            optimizer.zero_grad()
            for finished in optimizer.finished:
                assert finished.samples == sum(samples for _, samples in waiting)
                print(self.samples, finished)  # noqa: T201 - what its guards say, when it fails
                self.group_sizes.append(finished.group_size)
                self.counted[finished.epoch], waiting = waiting, []
            optimizer.finished.clear()
            time.sleep(0.25)


def batch_loss(model: torch.nn.Module, config: RunConfig, seed: int, samples: int) -> torch.Tensor:
    task = task_get("tiny")
    batch = next(task.batches(config, Path(), seed=seed, micro_batch=samples))
    return task.loss(model, batch)[0]


def train_alone(config: RunConfig, counted: list[Counted]) -> torch.nn.Module:
    """Train in one process without any swarm: each update on the union of all samples."""
    model = task_get("tiny").model_build(config, Path())
    groups, factory = optimizer_build(config.optimizer, model)
    optimizer = factory(groups)
    scheduler = scheduler_build(config.optimizer)(optimizer)
    for epoch in range(UPDATES):
        batches = [batch for peer in counted for batch in peer[epoch]]
        total = sum(samples for _, samples in batches)
        optimizer.zero_grad()
        for seed, samples in batches:
            (batch_loss(model, config, seed, samples) * (samples / total)).backward()
        optimizer.step()
        scheduler.step()
    return model


def relative_error(model: torch.nn.Module, truth: torch.nn.Module) -> float:
    pairs = zip(model.parameters(), truth.parameters(), strict=True)
    return max(((a - b).norm() / b.norm().clamp_min(1e-3)).item() for a, b in pairs)


@pytest.mark.swarm
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["sgd", "lamb"])
def test_two_peers_reach_the_parameters_of_one_process(
    tmp_path: Path, name: Literal["sgd", "lamb"]
) -> None:
    optimizer = OptimizerConfig(name=name, learning_rate=0.05, warmup_epochs=3, total_epochs=50)
    config = config_make(
        optimizer, target_batch_size=640, matchmaking_seconds=3.0, averaging_timeout_seconds=30.0
    )
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(tmp_path / "alice", config, entrance.addresses) as alice,
        training_peer(tmp_path / "bob", config, entrance.addresses) as bob,
    ):
        # Unlike micro-batches: hivemind's own averager gets their weights wrong.
        trainees = [
            Trainee(alice, config, first_seed=0, samples=12),
            Trainee(bob, config, first_seed=10_000, samples=8),
        ]
        for trainee in trainees:
            trainee.start()
        for trainee in trainees:
            trainee.join(200)
            if trainee.error is not None:
                raise trainee.error
            assert not trainee.is_alive()

        assert all(trainee.group_sizes == [2] * UPDATES for trainee in trainees)
        truth = train_alone(config, [trainee.counted for trainee in trainees])
        untrained = task_get("tiny").model_build(config, tmp_path)
        assert relative_error(untrained, truth) > 100 * TOLERANCE, "it has to move at all"
        assert alice.model is not None
        assert bob.model is not None
        errors = [relative_error(peer.model, truth) for peer in (alice, bob)]
        print(f"{name}: relative errors {errors}")  # noqa: T201 - shown with -s
        assert max(errors) <= TOLERANCE
