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
from hivemind.compression import NoCompression

from training.protocol.config import SwarmConfig
from training.swarm.averaging import TrainingStateAverager, norm_of
from training.swarm.state_files import schema_sha256, state_load, state_save
from training.swarm.state_take import parameters_of, state_fetch


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
            epoch = state_fetch(
                self._averager, min_epoch=max(min_epoch, self.epoch), timeout=timeout
            )
        except TimeoutError:
            return False
        if epoch is None:
            return False
        self._offer(epoch)
        return True

    @property
    def schema_sha256(self) -> str:
        """Hash of names, shapes and types of the model's tensors."""
        return schema_sha256(self._model)

    @property
    def parameter_norm(self) -> float:
        """Norm over all parameters of the state that is held."""
        return norm_of([p.detach() for p in parameters_of(self._averager)])

    def save(self, folder: Path) -> None:
        """Write the state that is held into a folder."""
        optimizer = self._averager.optimizer
        state_save(folder, model=self._model, optimizer=optimizer, epoch=self.epoch)

    def stop(self) -> None:
        """End the averager's process."""
        self._averager.shutdown()

    def _offer(self, epoch: int) -> None:
        averager = self._averager
        averager.local_epoch = epoch
        averager._update_scheduler()
        averager.state_sharing_priority = epoch - 0.5
        averager.allow_state_sharing = True
