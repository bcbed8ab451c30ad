"""What the counting of epochs remembers, as it is kept on disk."""

from typing import Literal

from pydantic import BaseModel, Field

from training.protocol.base import Instant
from training.protocol.metrics import EpochReport


class Work(BaseModel):
    """Evidence on one peer in one epoch."""

    recorded: int | None = None
    """Largest verified progress record."""
    stated: int | None = None
    """What its metrics say entered the average."""
    absent: bool = False
    """Its metrics cover the epoch and do not name it."""
    moved_on: bool = False
    """It showed a later epoch."""
    loss: float | None = None

    @property
    def discarded(self) -> int:
        """Recorded samples of a peer that says itself that they did not enter the average."""
        is_thrown_away = self.absent if self.stated is None else self.stated == 0
        return self.recorded or 0 if is_thrown_away else 0

    def samples(self, *, partly_watched: bool) -> int:
        """Return what counts; ``partly_watched``: records of this epoch may have been missed."""
        if self.stated is not None:
            if self.recorded is None or partly_watched:
                return self.stated
            return min(self.recorded, self.stated)
        if self.absent or not self.moved_on:
            return 0
        return self.recorded or 0


class OpenEpoch(BaseModel):
    """An epoch that is not reported yet."""

    closed_at: Instant | None = None
    work: dict[str, Work] = Field(default_factory=dict)


class PeerMark(BaseModel):
    """The newest that is known of one peer."""

    epoch: int
    reported_at: Instant
    seen_at: Instant
    client_mode: bool
    publishes_metrics: bool = False


class Journal(BaseModel):
    """Everything the counting remembers, as it is kept on disk."""

    version: Literal[1] = 1
    reported: int = -1
    """Newest reported epoch: older ones are over."""
    dropped: int = 0
    """Reports given up because the site did not answer for too long."""
    open: dict[int, OpenEpoch] = Field(default_factory=dict)
    peers: dict[str, PeerMark] = Field(default_factory=dict)
    pending: list[EpochReport] = Field(default_factory=list)
