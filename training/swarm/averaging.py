"""Our averagers: hivemind's, with what version 1.1.12 gets wrong put right.

Each override has a test that fails when hivemind changes what lies under it. The classes keep
hivemind's names on purpose: a handler on the wire is called after its class, and peers of other
trainers must be able to join our groups.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.optim import grad_averager, state_averager
from torch import Tensor

from training.swarm.witness import WitnessAverager


class GradientAverager(WitnessAverager, grad_averager.GradientAverager):
    """Accumulates the mean gradient of this peer's samples and averages it with its peers."""

    def __init__(self, *args: Any, find_timeout: float, **kwargs: Any) -> None:
        """``find_timeout``: seconds after which looking for a group is given up."""
        self._find_timeout = find_timeout
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
        samples, anchor = self.local_samples_accumulated, self._anchor_batch_size
        scale = anchor / samples if anchor and samples else 0.0
        with self.get_tensors() as averaged:
            for total, target in zip(self._grad_accumulators(), averaged, strict=True):
                target.copy_(total).mul_(scale)

    def schedule_step(
        self, scheduled_time: float | None = None, timeout: float | None = None, **kwargs: Any
    ) -> StepControl:
        """Begin matchmaking. hivemind looks for ever, or for as long as a whole round may take:
        then a peer that is alone beside a dead one loses half a minute at each epoch."""
        timeout = self._find_timeout if timeout is None else min(timeout, self._find_timeout)
        return super().schedule_step(scheduled_time=scheduled_time, timeout=timeout, **kwargs)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Keep what is accumulated until the optimizer has used it: hivemind resets it before
        the round, and when the round fails its "local gradients" are zeros."""
        return super().step(*args, **{**kwargs, "reset_accumulators": False})

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[Tensor], group_info: GroupInfo, *args: Any, **kwargs: Any
    ) -> None:
        """Tell the round who only assists: hivemind reads it and drops it, and an auxiliary peer
        then sends its whole empty vector."""
        gathered = map(self.serializer.loads, group_info.gathered)
        modes = tuple(AveragingMode(mode) for _, mode, _ in gathered)
        await super()._run_allreduce_inplace_(tensors, group_info, *args, modes=modes, **kwargs)

    def finite(self) -> bool:
        """Whether the averaged gradients, which others have written into, are all finite."""
        with self.get_tensors() as averaged:
            return is_finite(averaged)


class TrainingStateAverager(state_averager.TrainingStateAverager):
    """Averages weights now and then, and gives them to newcomers."""

    def __init__(self, *args: Any, find_timeout: float, **kwargs: Any) -> None:
        """``find_timeout``: seconds after which looking for a group is given up."""
        self._find_timeout = find_timeout
        self._running: StepControl | None = None
        super().__init__(*args, **kwargs)

    def cancel_round(self) -> None:
        """End a round in the background: the thread that waits for it would hold up the exit."""
        control = self._running
        if control is not None and not control.done():
            with suppress(Exception):
                control.cancel()

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


def is_finite(tensors: Sequence[Tensor]) -> bool:
    """Return whether no value is NaN or infinite. The tensors are on one device; on a GPU there
    is one number to wait for."""
    if not tensors:
        return True
    with torch.no_grad():
        norms = torch._foreach_norm(list(tensors))
        return bool(torch.isfinite(torch.stack([norm.float() for norm in norms]).sum()))
