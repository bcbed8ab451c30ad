"""Peers of a swarm inside the test's own process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.config import OptimizerConfig, RunConfig, SwarmConfig, TaskConfig
from training.swarm.dht import dht_start, dht_stop, visible_addresses
from training.swarm.optimizer import SwarmOptimizer, swarm_optimizer
from training.tasks.optim import optimizer_build, scheduler_build
from training.tasks.registry import task_get


@dataclass
class Peer:
    """A DHT peer, with a model and an optimizer once it trains."""

    key: SwarmKey
    dht: Any
    model: torch.nn.Module | None = None
    optimizer: SwarmOptimizer | None = None

    @property
    def addresses(self) -> list[str]:
        return visible_addresses(self.dht)


def config_make(optimizer: OptimizerConfig | None = None, **swarm: Any) -> RunConfig:
    """Return a config of the tiny task with quick matchmaking."""
    values: dict[str, Any] = {
        "target_batch_size": 256,
        "matchmaking_seconds": 2.0,
        "request_timeout_seconds": 1.0,
        "averaging_timeout_seconds": 15.0,
        "load_state_timeout_seconds": 15.0,
        "average_state_every": 1000,
        "compression": "none",
        "admission": "open",
    }
    return RunConfig(
        run="tiny",
        title="Tiny",
        version=1,
        seed=5,
        task=TaskConfig(name="tiny"),
        optimizer=optimizer or OptimizerConfig(learning_rate=0.02),
        swarm=SwarmConfig(**(values | swarm)),
    )


@contextmanager
def dht_peer(
    folder: Path, config: RunConfig, peers: Sequence[str] = (), **options: Any
) -> Iterator[Peer]:
    """A peer that is in the DHT only."""
    key = swarm_key_load_or_create(folder / "swarm.key")
    values: dict[str, Any] = {"bind": "127.0.0.1", "port": 0, "client_mode": False}
    dht = dht_start(key=key, run_id=config.swarm_id, initial_peers=peers, **(values | options))
    try:
        yield Peer(key, dht)
    finally:
        dht_stop(dht)


@contextmanager
def training_peer(
    folder: Path,
    config: RunConfig,
    peers: Sequence[str] = (),
    *,
    kind: type[SwarmOptimizer] = SwarmOptimizer,
    **options: Any,
) -> Iterator[Peer]:
    """A peer with a model and an optimizer; nothing is trained by itself."""
    with dht_peer(folder, config, peers, **options) as peer:
        peer.model = task_get(config.task.name).model_build(config, folder)
        groups, factory = optimizer_build(config.optimizer, peer.model)
        peer.optimizer = swarm_optimizer(
            dht=peer.dht,
            config=config,
            key=peer.key,
            param_groups=groups,
            optimizer_factory=factory,
            scheduler_factory=scheduler_build(config.optimizer),
            kind=kind,
        )
        try:
            yield peer
        finally:
            peer.optimizer.shutdown()


def hiveminds_own(ours: type) -> type:
    """Return the class of hivemind that one of ours stands for."""
    return next(base for base in ours.__mro__ if base.__module__.startswith("hivemind."))
