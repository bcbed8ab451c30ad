"""Keeps a copy of the training state, and gives it to newcomers when nobody else can.

The donor has the same state averager as a trainer's optimizer, but never averages. It asks for
less priority than a trainer of the same epoch, so that it is the last resort: it matters when
the swarm is empty, and then it is what keeps a run from starting again at epoch 0.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from hivemind import DHT
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import NoCompression
from hivemind.optim.state_averager import dump_optimizer_state, load_optimizer_state

from training.protocol.config import SwarmConfig
from training.swarm.averaging import TrainingStateAverager
from training.swarm.state_files import (
    StateError,
    finite_check,
    state_load,
    state_save,
    values_check,
)


class Donor:
    """The training state at the coordinator. Make it in the main thread: it forks."""

    def __init__(
        self,
        *,
        dht: DHT,
        run_id: str,
        swarm: SwarmConfig,
        model: torch.nn.Module,
        param_groups: list[dict[str, Any]],
        optimizer_factory: Callable[[Iterable[Any]], torch.optim.Optimizer],
        scheduler_factory: Callable[[torch.optim.Optimizer], Any],
    ) -> None:
        self._model = model
        self._averager = TrainingStateAverager(
            dht=dht,
            prefix=f"{run_id}_state_averager",
            params=param_groups,
            optimizer=optimizer_factory,
            scheduler=scheduler_factory,
            min_matchmaking_time=swarm.matchmaking_seconds,
            request_timeout=swarm.request_timeout_seconds,
            find_timeout=swarm.matchmaking_seconds,
            next_chunk_timeout=max(5.0, swarm.averaging_timeout_seconds / 3),
            # 16 bits would turn the optimizer's small second moments into zeros.
            state_compression=NoCompression(),
            initialize_optimizer=False,
            allow_state_sharing=False,
            start=True,
        )

    @property
    def epoch(self) -> int:
        """Epoch of the state that is held; 0 before there is one."""
        return int(self._averager.local_epoch)

    @property
    def is_giving(self) -> bool:
        """Whether there is a state to give."""
        return bool(self._averager.allow_state_sharing)

    def restore(self, folder: Path, *, epoch: int) -> None:
        """Take the state from a checkpoint and offer it.

        Raises:
            StateError: it does not fit this run.
        """
        averager = self._averager
        with averager.lock_averaged_tensors:
            state_load(folder, model=self._model, optimizer=averager.optimizer)
        self._offer(epoch)

    def refresh(self, *, min_epoch: int, timeout: float) -> bool:
        """Take the newest state from a trainer; tell whether there was one.

        False when nobody gave a state of ``min_epoch`` or newer within ``timeout`` seconds.

        Raises:
            StateError: what came does not fit or is not finite; the old state is kept.
        """
        try:
            # The trainer's own method would write whatever comes over the state we hold.
            loaded = DecentralizedAverager.load_state_from_peers(self._averager, timeout=timeout)
        except TimeoutError:
            return False
        if loaded is None:
            return False
        metadata, tensors = loaded
        epoch = metadata.get("epoch") if isinstance(metadata, dict) else None
        if not isinstance(epoch, int) or epoch < max(min_epoch, self.epoch):
            return False
        self._take(list(tensors), metadata)
        self._offer(epoch)
        return True

    def save(self, folder: Path) -> None:
        """Write the state that is held into a folder."""
        optimizer = self._averager.optimizer
        state_save(folder, model=self._model, optimizer=optimizer, epoch=self.epoch)

    def stop(self) -> None:
        """End the averager's process."""
        self._averager.shutdown()

    @torch.no_grad()
    def _take(self, tensors: list[torch.Tensor], metadata: dict[str, Any]) -> None:
        averager = self._averager
        parameters = [p for group in averager.optimizer.param_groups for p in group["params"]]
        targets = [*parameters, *averager.extra_tensors]
        _, statistics = dump_optimizer_state(averager.optimizer)
        shapes = [tensor.shape for tensor in (*targets, *statistics)]
        if [tensor.shape for tensor in tensors] != shapes:
            raise StateError("a trainer's state has other shapes than this run's model")
        finite_check(tensors)
        values = metadata.get("optimizer_metadata")
        if not isinstance(values, list | tuple) or not all(isinstance(v, dict) for v in values):
            raise StateError("a trainer's optimizer state is malformed")
        values_check([value.get("value") for value in values])
        try:
            with averager.lock_averaged_tensors:
                load_optimizer_state(averager.optimizer, values, tensors[len(targets) :])
                for target, tensor in zip(targets, tensors[: len(targets)], strict=True):
                    target.copy_(tensor)
        except (RuntimeError, ValueError, KeyError, IndexError, TypeError) as error:
            # hivemind runs out of values inside a generator, which is a RuntimeError.
            raise StateError(f"a trainer's optimizer state does not fit: {error}") from error

    def _offer(self, epoch: int) -> None:
        averager = self._averager
        averager.local_epoch = epoch
        averager._update_scheduler()
        averager.state_sharing_priority = epoch - 0.5
        averager.allow_state_sharing = True
