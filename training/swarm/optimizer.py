"""hivemind's optimizer as a run's config describes it, and as safe as a volunteer needs it."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from hivemind import DHT
from hivemind.averaging.control import StepControl
from hivemind.compression import CompressionBase, Float16Compression, NoCompression

from training.client.swarm_key import SwarmKey
from training.protocol.claims import CheckpointManifest
from training.protocol.config import RunConfig
from training.swarm.averaging import GradientAverager, TrainingStateAverager, guards_make
from training.swarm.cancelling import control_cancel
from training.swarm.catching_up import PROGRESS_EXPIRES_SECONDS, CatchingUp, LeftBehind
from training.swarm.epoch_guard import EpochGuard
from training.swarm.identity import rsa_key
from training.swarm.processes import sigint_kept
from training.swarm.round_wait import RoundTimes, round_wait
from training.swarm.state_take import KnownState, known_state
from training.swarm.witness import Seen, round_epoch

_FIND_ROUNDS = 3.0
"""Looking for a group is given up after so many matchmaking times."""
_SHUTDOWN_SECONDS = 1.0
_NEVER = 10**9


@dataclass(frozen=True)
class FinishedEpoch:
    """How an epoch ended for this peer."""

    epoch: int
    """As most members of the averaging round number it."""
    samples: int
    """Of this peer, that entered the average; 0 when its round failed while others averaged."""
    group_size: int
    """Peers in the averaging round, this one included; 1 without a round."""
    seconds: float
    """From the end of the last micro-step to the updated weights."""
    weights: Mapping[str, int | None] = field(default_factory=dict)
    """The round's other members by peer id: the samples that their parts carried, or None for
    those that sent no part to this peer."""
    notes: tuple[str, ...] = ()
    """What the guards refused, in sentences."""
    times: RoundTimes = field(default_factory=RoundTimes)


class SwarmOptimizer(CatchingUp):
    """One ``step`` per micro-batch; see :func:`swarm_optimizer`."""

    assists: ClassVar[bool] = False
    """Whether it only averages what others send."""

    def __init__(self, *, known: KnownState | None = None, **kwargs: Any) -> None:
        self.finished: list[FinishedEpoch] = []
        """Epochs that ended since somebody took them out."""
        self.is_out_of_sync = False
        """The swarm is ahead and its state could not be loaded at the last attempt."""
        self.on_averaging: Callable[[], None] = lambda: None
        """Called when an epoch is full, before this peer averages."""
        self.leaving = threading.Event()
        """Once set, waiting for others is cut short."""
        self._known = known
        self._guard = EpochGuard(kwargs["run_id"])
        self._group_size: int | None = None
        """Of this epoch's round; None: there was none."""
        self._weights: dict[str, int | None] = {}
        self._times = RoundTimes()
        self._round_epoch = 0
        self.scheduled_grads: StepControl | None = None
        super().__init__(**kwargs)
        self.grad_averager.epoch_of = lambda: self.local_epoch

    @property
    def num_peers(self) -> int:
        """Trainers that reported progress lately, this one included."""
        return max(1, int(self.tracker.global_progress.num_peers))

    @property
    def parameters(self) -> list[torch.Tensor]:
        """The optimizer's own copies of the parameters, in host memory."""
        return [p for group in self.opt.param_groups for p in group["params"]]

    def weights_apply(self) -> None:
        """Copy the optimizer's weights into the model."""
        self.state_averager._apply_optimizer_parameters_()

    def shutdown(self) -> None:
        """Leave in a few seconds; hivemind would wait for rounds that are under way."""
        self.tracker.shutdown(_SHUTDOWN_SECONDS)
        self.state_averager.cancel_round()
        for control in (self.scheduled_grads, self.scheduled_state):
            control_cancel(control)
        for averager in (self.grad_averager, self.state_averager):
            with suppress(Exception):
                averager.shutdown()
            if averager.is_alive():
                averager.kill()

    def _make_state_averager(self, **kwargs: Any) -> TrainingStateAverager:
        return TrainingStateAverager(
            dht=self.dht,
            prefix=f"{self.run_id}_state_averager",
            min_matchmaking_time=self.matchmaking_time,
            allreduce_timeout=self.allreduce_timeout,
            shutdown_timeout=self.shutdown_timeout,
            next_chunk_timeout=self.next_chunk_timeout,
            offload_optimizer=True,
            custom_gradients=True,
            client_mode=self.client_mode,
            auxiliary=self.auxiliary,
            start=True,
            **kwargs,
        )

    def _update_global_epoch(self, grad_scaler: Any) -> None:
        self.on_averaging()
        started = time.monotonic()
        samples = self.grad_averager.local_samples_accumulated
        self._group_size, self._weights, self._times = None, {}, RoundTimes()
        self._round_epoch = self.local_epoch
        self._guard.check_own(self.grad_averager)
        is_sent = not self.grad_averager.is_withheld
        try:
            if self.tracker.global_epoch > self.local_epoch:
                self._look_ahead(self.scheduled_grads)
            super()._update_global_epoch(grad_scaler)
        except LeftBehind as ahead:
            self._follow_to(ahead.epoch)
            return
        if self._group_size is None:  # no round: nobody is there, or a planned one ran out
            is_missed = self.num_peers > 1 and self._has_living_peers()
            self._group_size = 0 if is_missed else 1
        size, took = self._group_size, time.monotonic() - started
        entered = samples if size and is_sent else 0
        notes = self.notes_taken()
        epoch, weights = self._round_epoch, self._weights
        self.finished.append(FinishedEpoch(epoch, entered, size, took, weights, notes, self._times))

    def notes_taken(self) -> tuple[str, ...]:
        """Return what the guards refused since the last call, in sentences."""
        guards = (self.grad_averager.guard, self.state_averager.guard)
        found = [note for guard in guards if guard is not None for note in guard.taken()]
        return (*self._guard.notes_taken(), *found)

    def _average_gradients_and_load_into_optimizer(self, control: StepControl | None) -> None:
        """As hivemind's, but a failed round is cancelled, and NaN from others is not taken in."""
        if control is not None:
            try:
                group = round_wait(
                    control,
                    timeout=self.averaging_timeout,
                    leaving=self.leaving,
                    times=self._times,
                    look=lambda: self._look_ahead(control),
                )
                if self._guard.is_average_usable(self.grad_averager, len(group)):
                    self._round_take(group)
                    self._load_averaged_gradients_into_optimizer_()
                    return
            except LeftBehind:
                self.grad_averager.notify_used_averaged_gradients()
                raise
            except Exception:  # noqa: BLE001 - whatever it was, we go on with what we have
                control_cancel(control)
            self._group_size = 0 if self._has_living_peers() else 1
        self._load_local_gradients_into_optimizer()

    def _round_take(self, group: Mapping[Any, Seen]) -> None:
        own = self.dht.peer_id
        self._group_size = len(group)
        self._weights = {str(peer): seen for peer, (_, seen) in group.items() if peer != own}
        self._round_epoch = round_epoch(self.local_epoch, (epoch for epoch, _ in group.values()))


def swarm_optimizer(
    *,
    dht: DHT,
    config: RunConfig,
    key: SwarmKey,
    param_groups: list[dict[str, Any]],
    optimizer_factory: Callable[[Iterable[Any]], torch.optim.Optimizer],
    scheduler_factory: Callable[[torch.optim.Optimizer], Any],
    kind: type[SwarmOptimizer] = SwarmOptimizer,
    checkpoint: CheckpointManifest | None = None,
) -> SwarmOptimizer:
    """Return the optimizer that trains a model's parameters with the swarm of ``dht``.

    Call it from the main thread: it forks two averagers. ``checkpoint`` is the newest that is
    known: a downloaded state is compared with it.
    """
    swarm = config.swarm
    is_plain = swarm.compression == "none"
    compression: CompressionBase = NoCompression() if is_plain else Float16Compression()
    gradient_guard, state_guard = guards_make(swarm)
    chunk_timeout = max(5.0, swarm.averaging_timeout_seconds / 3)
    patience = min(swarm.averaging_timeout_seconds, _FIND_ROUNDS * swarm.matchmaking_seconds)
    averaging = {"request_timeout": swarm.request_timeout_seconds, "find_timeout": patience}
    with sigint_kept():
        return kind(
            known=known_state(checkpoint),
            dht=dht,
            run_id=config.swarm_id,
            target_batch_size=swarm.target_batch_size,
            params=param_groups,
            optimizer=optimizer_factory,
            scheduler=scheduler_factory,
            matchmaking_time=swarm.matchmaking_seconds,
            averaging_timeout=swarm.averaging_timeout_seconds,
            next_chunk_timeout=chunk_timeout,
            load_state_timeout=swarm.load_state_timeout_seconds,
            average_state_every=_NEVER if kind.assists else swarm.average_state_every,
            offload_optimizer=True,
            client_mode=dht.client_mode,
            auxiliary=kind.assists,
            grad_compression=compression,
            state_averaging_compression=compression,
            # 16 bits would turn a third of the optimizer's second moments into zeros.
            load_state_compression=NoCompression(),
            grad_averager_factory=partial(
                GradientAverager, allow_state_sharing=False, guard=gradient_guard, **averaging
            ),
            averager_opts={"initialize_optimizer": False, "guard": state_guard, **averaging},
            tracker_opts={
                "private_key": rsa_key(key),
                "metadata_expiration": PROGRESS_EXPIRES_SECONDS,
            },
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )
