"""Nothing that is not a finite number leaves this machine, and none of it stays.

One NaN among gradients or weights would reach every peer within an epoch and destroy the run.
"""

import math
from contextlib import AbstractContextManager
from typing import Any

import torch

from training.swarm.averaging import is_finite


def gradients_are_finite(model: torch.nn.Module, loss: float) -> bool:
    """Return whether a micro-step may count: its loss and every gradient are finite."""
    if not math.isfinite(loss):
        return False
    return is_finite([p.grad for p in model.parameters() if p.grad is not None])


class WeightGuard:
    """Keeps the last finite weights and statistics of an optimizer.

    It looks after each step of the optimizer, before the result can be averaged or given to a
    newcomer, and puts the last finite state back in place of a broken one.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, lock: AbstractContextManager[Any]) -> None:
        """``lock`` protects the tensors against whoever averages them meanwhile."""
        self._optimizer, self._lock = optimizer, lock
        self._kept = [tensor.detach().clone() for tensor in self._tensors()]
        self._hook = optimizer.register_step_post_hook(self._after_step)
        self.num_restored = 0

    def close(self) -> None:
        """Stop watching."""
        self._hook.remove()

    def check(self) -> bool:
        """Return whether the state is finite; if not, the last finite one is put back."""
        with self._lock:
            return self._check()

    def keep(self) -> None:
        """Take the present state as the last finite one, as after a download."""
        with self._lock:
            self._check()

    def _after_step(self, *_: Any) -> None:
        # The optimizer steps with the lock held.
        self._check()

    @torch.no_grad()
    def _check(self) -> bool:
        tensors = self._tensors()
        if is_finite(tensors):
            torch._foreach_copy_(self._kept, tensors)
            return True
        torch._foreach_copy_(tensors, self._kept)
        self.num_restored += 1
        return False

    def _tensors(self) -> list[torch.Tensor]:
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        statistics = [
            value
            for parameter in parameters
            for name, value in sorted(self._optimizer.state[parameter].items())
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape
        ]
        return [p.detach() for p in parameters] + statistics
