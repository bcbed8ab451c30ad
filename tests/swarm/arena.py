"""Eight averagers in the test's own process that train one model by real all-reduces.

What attackers do is done in their averagers, below every guard of the trainer: they change what
they have computed just before it is sent, or what they give back to those they average for.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from hivemind.averaging.group_info import GroupInfo
from torch import Tensor

from tests.swarm.peers import Peer
from training.protocol.config import RunConfig
from training.swarm import averaging, robust
from training.swarm.averaging import guards_make
from training.swarm.clipping import Outcome
from training.tasks.registry import task_get

GUARDED = torch.ones(1).share_memory_()
"""Whether averagers guard their rounds; their processes see it change."""
LYING = torch.zeros(1).share_memory_()
"""Whether lying averagers lie to those for whom they average."""
Tamper = Callable[[Tensor], Tensor]
honest_mean = robust.robust_mean


class GradientAverager(averaging.GradientAverager):
    """Ours, with a tamperer's hand in it."""

    tamper: Tamper | None = None
    lie: Tamper | None = None

    def load_accumulators_into_averager_(self) -> None:
        super().load_accumulators_into_averager_()
        if self.tamper is not None:
            with self.get_tensors() as tensors:
                for tensor in tensors:
                    tensor.copy_(self.tamper(tensor))

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[Tensor], group_info: GroupInfo, *args: Any, **kwargs: Any
    ) -> None:
        guard, lie = self.guard, self.lie

        def lying_mean(*values: Any, **options: Any) -> Any:
            outcome = honest_mean(*values, **options)
            return Outcome(lie(outcome.mean)) if lie and LYING else outcome

        robust.robust_mean = lying_mean  # in this averager's process only
        self.guard = guard if GUARDED else None
        try:
            await super()._run_allreduce_inplace_(tensors, group_info, *args, **kwargs)
        finally:
            self.guard = guard


def not_a_number(values: Tensor) -> Tensor:
    return torch.full_like(values, math.nan)


def hundredfold(values: Tensor) -> Tensor:
    return values * 100


def flipped(values: Tensor) -> Tensor:
    return -values


class Contestant:
    """A peer with a model and an averager; it trains when it is told to."""

    def __init__(
        self, peer: Peer, config: RunConfig, number: int, lie: Tamper | None = None
    ) -> None:
        self.config, self.number, self.task = config, number, task_get(config.task.name)
        self.reset()
        self.averager = GradientAverager.__new__(GradientAverager)
        self.averager.lie = lie
        guard, _ = guards_make(config.swarm)
        self.averager.__init__(  # type: ignore[misc]
            list(self.model.parameters()),
            dht=peer.dht,
            prefix="arena_grad_averager",
            min_matchmaking_time=config.swarm.matchmaking_seconds,
            request_timeout=config.swarm.request_timeout_seconds,
            find_timeout=10.0,
            allreduce_timeout=10.0,
            next_chunk_timeout=5.0,
            allow_state_sharing=False,
            guard=guard,
            warn=False,
            start=True,
        )

    def reset(self) -> None:
        """Start from the untrained model and the first batch."""
        fresh = self.task.model_build(self.config, Path())
        if hasattr(self, "model"):
            self.model.load_state_dict(fresh.state_dict())
        else:
            self.model = fresh
        self.batches = self.task.batches(self.config, Path(), seed=self.number, micro_batch=512)

    def compute(self) -> None:
        loss, samples = self.task.loss(self.model, next(self.batches))
        self.model.zero_grad(set_to_none=False)
        loss.backward()
        self.averager.reset_accumulated_grads_()
        self.averager.accumulate_grads_(samples)

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        with self.averager.get_tensors() as gradients:
            for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
                parameter.sub_(gradient, alpha=learning_rate)

    def loss(self) -> float:
        batch = next(self.task.batches(self.config, Path(), seed=10_000, micro_batch=4096))
        with torch.no_grad():
            return float(self.task.loss(self.model, batch)[0])


def average(team: Sequence[Contestant], *, attempts: int = 4) -> None:
    """Average the accumulated gradients of a whole team, all in one group."""
    for _ in range(attempts):
        # One clock for all: whoever looked earlier would lead a group of its own.
        start = time.time() + team[0].config.swarm.matchmaking_seconds
        controls = [one.averager.step(scheduled_time=start, wait=False, timeout=15) for one in team]
        sizes = []
        for control in controls:
            try:
                sizes.append(len(control.result(20)))
            except Exception:  # noqa: BLE001 - a round that failed is tried again
                control.cancel()
                sizes.append(0)
        if sizes == [len(team)] * len(team):
            return
    raise AssertionError(f"no group of {len(team)} came together: {sizes}")


def train(team: Sequence[Contestant], rounds: int, *, learning_rate: float = 0.5) -> list[float]:
    """Train a team from scratch; return each member's final loss."""
    for one in team:
        one.reset()
    for _ in range(rounds):
        for one in team:
            one.compute()
        average(team)
        for one in team:
            one.update(learning_rate)
    return [one.loss() for one in team]
