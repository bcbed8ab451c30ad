"""Judges each epoch's gradients by what was usual before: one's own, and the average."""

import logging
import math

from training.swarm.averaging import GradientAverager
from training.swarm.band import NormBand

_log = logging.getLogger(__name__)


class EpochGuard:
    """Keeps this peer's odd gradients from others, and others' odd averages from this peer."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._own, self._averages = NormBand(), NormBand()
        self._notes: list[str] = []

    def check_own(self, averager: GradientAverager) -> None:
        """Withhold the accumulated gradients of this epoch when they are not fit to be sent."""
        samples = averager.local_samples_accumulated
        if not samples:
            return
        norm, limit = averager.own_norm(), self._own.limit(samples)
        if self._own.accept(norm, samples):
            return
        averager.is_withheld = True
        self.note(
            f"the gradients of this device are {_described(norm, limit)}: they are not sent, "
            "and its samples of this epoch do not count"
        )

    def is_average_usable(self, averager: GradientAverager, num_peers: int) -> bool:
        """Return whether an average that others have written into may move the weights."""
        norm, limit = averager.averaged_norm(), self._averages.limit()
        if self._averages.accept(norm):
            return True
        self.note(
            f"the average of {num_peers} peers is {_described(norm, limit)}: "
            "this device goes on with its own gradients"
        )
        return False

    def note(self, text: str) -> None:
        """Keep a sentence for the user, and log it."""
        _log.warning("%s: %s", self._run_id, text)
        self._notes.append(text)

    def notes_taken(self) -> tuple[str, ...]:
        """Return what was noted since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes


def _described(norm: float, limit: float) -> str:
    if not math.isfinite(norm):
        return "not finite"
    return f"far above what is usual (norm {norm:.3g}, usual up to {limit:.3g})"
