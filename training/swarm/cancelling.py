"""Giving up a step of averaging."""

import time
from contextlib import suppress

from hivemind.averaging.control import AveragingStage, StepControl
from hivemind.utils import MPFuture

_POLL_SECONDS = 0.01
_ANSWER_SECONDS = 2.0


def control_cancel(control: StepControl | None) -> None:
    """End a step that is not over; one that ends by itself meanwhile is as good.

    hivemind wakes the averager before the step counts as cancelled: one that looks in between
    goes on looking for a group, and averages gradients that nobody waits for.
    """
    if control is None or control.done():
        return
    with suppress(Exception):
        MPFuture.cancel(control)
    with suppress(Exception):
        control.cancel()


def control_withdraw(control: StepControl | None) -> bool:
    """Cancel a step; return whether nothing of it can have reached another peer."""
    if control is None:
        return True
    control_cancel(control)
    end = time.monotonic() + _ANSWER_SECONDS
    while control.stage is not AveragingStage.FINISHED and not control.began_allreduce:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return not control.began_allreduce
