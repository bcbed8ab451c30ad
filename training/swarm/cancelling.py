"""Giving up a step of averaging."""

from contextlib import suppress

from hivemind.averaging.control import StepControl


def control_cancel(control: StepControl | None) -> None:
    """End a step that is not over; one that ends by itself meanwhile is as good."""
    if control is not None and not control.done():
        with suppress(Exception):
            control.cancel()
