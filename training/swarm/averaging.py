"""Our averagers: hivemind's, with what version 1.1.12 gets wrong put right.

Each override has a test that fails when hivemind changes what lies under it. The classes keep
hivemind's names on purpose: a handler on the wire is called after its class, and peers of other
trainers must be able to join our groups.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from hivemind.averaging import averager as hivemind_averager
from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.optim import grad_averager, state_averager
from hivemind.p2p import PeerID
from hivemind.utils import MPFuture
from torch import Tensor

from training.protocol.config import SwarmConfig
from training.swarm.cancelling import control_cancel
from training.swarm.clipping import Limits
from training.swarm.download import StateOffer, bytes_allowed, state_download
from training.swarm.findings import RoundGuard
from training.swarm.gated import GatedAverager
from training.swarm.pairing import Pairing
from training.swarm.robust import runner_make
from training.swarm.witness import WitnessAverager

# The names by which hivemind makes its rounds and groups; the averagers hand rounds their guard.
hivemind_averager.AllReduceRunner = runner_make
hivemind_averager.Matchmaking = Pairing

_OVERSHOOT = 1.25
"""An epoch ends a little after its target, at the latest after this many times of it."""


class GradientAverager(GatedAverager, WitnessAverager, grad_averager.GradientAverager):
    """Accumulates the mean gradient of this peer's samples and averages it with its peers."""

    guard: RoundGuard | None = None
    epoch_of: Callable[[], int] | None = None
    """Tells the epoch that this peer is in: members of a round let each other know."""
    is_withheld = False
    """Whether the own gradients of this epoch are unfit: zeros take part, with weight 0."""

    def __init__(
        self, *args: Any, find_timeout: float, guard: RoundGuard | None = None, **kwargs: Any
    ) -> None:
        """``find_timeout``: seconds after which looking for a group is given up."""
        self._find_timeout, self.guard = find_timeout, guard
        self._anchor_batch_size: int | None = None
        super().__init__(*args, **kwargs)

    @torch.no_grad()
    def accumulate_grads_(self, batch_size: int) -> None:
        """Add a micro-batch's mean gradient; one fused call instead of one per tensor."""
        if self._anchor_batch_size is None:
            self._anchor_batch_size = batch_size
        self.local_samples_accumulated += batch_size
        self.local_times_accumulated += 1
        gradients = list(self._grads_from_parameters())
        sums = list(self._grad_accumulators())
        share = float(batch_size) / self._anchor_batch_size
        if all(s.device == g.device for s, g in zip(sums, gradients, strict=True)):
            torch._foreach_add_(sums, gradients, alpha=share)
        else:
            for total, gradient in zip(sums, gradients, strict=True):
                total.add_(gradient.to(total.device), alpha=share)

    @torch.no_grad()
    def load_accumulators_into_averager_(self) -> None:
        """Hand over the mean per sample. hivemind's is right for equal micro-batches only."""
        with self.get_tensors() as averaged:
            for total, target in zip(self._grad_accumulators(), averaged, strict=True):
                if self.is_withheld:
                    target.zero_()  # not times 0: that keeps a NaN
                else:
                    target.copy_(total).mul_(self._scale())

    def _scale(self) -> float:
        samples, anchor = self.local_samples_accumulated, self._anchor_batch_size
        return anchor / samples if anchor and samples else 0.0

    def own_norm(self) -> float:
        """Return the norm of the accumulated mean gradient; one number to wait for."""
        return norm_of(list(self._grad_accumulators())) * self._scale()

    def averaged_norm(self) -> float:
        """Return the norm of the averaged gradients, which others have written into."""
        with self.get_tensors() as averaged:
            return norm_of(averaged)

    def reset_accumulated_grads_(self) -> None:
        super().reset_accumulated_grads_()
        self.is_withheld = False

    def schedule_step(
        self, scheduled_time: float | None = None, timeout: float | None = None, **kwargs: Any
    ) -> StepControl:
        """Begin matchmaking. hivemind looks for ever, or for as long as a whole round may take:
        then a peer that is alone beside a dead one loses half a minute at each epoch."""
        timeout = self._find_timeout if timeout is None else min(timeout, self._find_timeout)
        epoch = None if self.epoch_of is None else self.epoch_of()
        return super().schedule_step(scheduled_time, timeout=timeout, gather=epoch, **kwargs)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Keep what is accumulated until the optimizer has used it: hivemind resets it before
        the round, and when the round fails its "local gradients" are zeros."""
        if self.is_withheld:
            kwargs["weight"] = 0.0
        return super().step(*args, **{**kwargs, "reset_accumulators": False})

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[Tensor], group_info: GroupInfo, *args: Any, **kwargs: Any
    ) -> None:
        """Tell the round who only assists: hivemind reads it and drops it, and an auxiliary peer
        then sends its whole empty vector."""
        gathered = map(self.serializer.loads, group_info.gathered)
        kwargs["modes"] = tuple(AveragingMode(mode) for _, mode, _ in gathered)
        if self.guard is not None:
            kwargs["guard"] = self.guard
        await super()._run_allreduce_inplace_(tensors, group_info, *args, **kwargs)


class TrainingStateAverager(GatedAverager, state_averager.TrainingStateAverager):
    """Averages weights now and then, and gives them to newcomers."""

    guard: RoundGuard | None = None

    def __init__(
        self, *args: Any, find_timeout: float, guard: RoundGuard | None = None, **kwargs: Any
    ) -> None:
        """``find_timeout``: seconds after which looking for a group is given up."""
        self._find_timeout, self.guard = find_timeout, guard
        self._running: StepControl | None = None
        self._failed_donors: Counter[PeerID] = Counter()
        super().__init__(*args, **kwargs)

    def state_ask(
        self, *, avoid: Collection[str], min_epoch: int, timeout: float
    ) -> StateOffer | None:
        """Return a peer's state as it came, unchecked; None when nobody gives one.

        Raises:
            TimeoutError: it took longer than ``timeout`` seconds.
        """
        future: MPFuture[Any] = MPFuture()
        _, statistics = state_averager.dump_optimizer_state(self.optimizer)
        tensors = [*self._local_tensors(), *statistics]
        values = {"avoid": list(avoid), "min_epoch": min_epoch, "max_bytes": bytes_allowed(tensors)}
        self._outer_pipe.send(("_state_ask", [], {"future": future, "seconds": timeout, **values}))
        offer = future.result(timeout + 1)
        return None if offer is None else StateOffer(*offer)

    async def _state_ask(self, *, future: MPFuture[Any], seconds: float, **values: Any) -> None:
        try:
            download = state_download(self, failed=self._failed_donors, **values)
            offer = await asyncio.wait_for(download, seconds)
            # Plain values: the other process unpickles them.
            future.set_result(offer and (offer.peer, offer.metadata, offer.tensors))
        except BaseException as error:
            if not future.done():
                future.set_exception(error)
            raise

    def state_apply(self, epoch: int) -> None:
        """Make a state that was taken over the one to train with, and to give to others."""
        if self.offload_optimizer:
            self._apply_optimizer_parameters_()
        if not self.reuse_tensors:
            self._load_local_tensors_into_averager_()
        self.local_epoch = epoch
        self._update_scheduler()

    def cancel_round(self) -> None:
        """End a round in the background: the thread that waits for it would hold up the exit."""
        control_cancel(self._running)

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[Tensor], group_info: GroupInfo, *args: Any, **kwargs: Any
    ) -> None:
        if self.guard is not None:
            kwargs["guard"] = self.guard
        await super()._run_allreduce_inplace_(tensors, group_info, *args, **kwargs)

    def _do(
        self,
        wait_for_trigger: Callable[[], Any] | None,
        optimizer_step: bool,
        zero_grad: bool,
        averaging_round: bool,
        averaging_control: StepControl | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if averaging_round:
            if averaging_control is None or averaging_control.triggered or averaging_control.done():
                averaging_control = self.schedule_step(
                    gather=self.local_epoch, timeout=self._find_timeout
                )
            self._running = averaging_control
        super()._do(
            wait_for_trigger,
            optimizer_step,
            zero_grad,
            averaging_round,
            averaging_control,
            *args,
            **kwargs,
        )
        self._running = None


def guards_make(swarm: SwarmConfig) -> tuple[RoundGuard, RoundGuard]:
    """Return the guards of gradient and of state averaging. Make them before forking."""
    is_clipping = swarm.robust_averaging == "clip"
    gradients = Limits(
        max_weight=_OVERSHOOT * swarm.target_batch_size,
        floor=0.1,
        reply_ratio=10.0,
        is_clipping=is_clipping,
    )
    # Weights of peers that miss no epoch are nearly equal, and one peer counts like another.
    state = Limits(
        max_weight=1.0,
        floor=0.01,
        reply_ratio=0.5,
        is_clipping=is_clipping,
        pair_ratio=2.0,
        are_samples=False,
    )
    return RoundGuard(gradients), RoundGuard(state)


@torch.no_grad()
def norm_of(tensors: Sequence[Tensor]) -> float:
    """Return the norm over all values; NaN or infinite when one of them is. The tensors are on
    one device; on a GPU there is one number to wait for."""
    if not tensors:
        return 0.0
    norms = torch._foreach_norm(list(tensors))
    return float(torch.linalg.vector_norm(torch.stack([norm.float() for norm in norms])))


def is_finite(tensors: Sequence[Tensor]) -> bool:
    """Return whether no value is NaN or infinite. The tensors are on one device; on a GPU there
    is one number to wait for."""
    if not tensors:
        return True
    with torch.no_grad():
        norms = torch._foreach_norm(list(tensors))
        return bool(torch.isfinite(torch.stack([norm.float() for norm in norms]).sum()))
