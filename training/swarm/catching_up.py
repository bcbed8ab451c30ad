"""Following a swarm that is ahead: its state is taken over, in one attempt at a time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hivemind
from hivemind.averaging.control import AveragingStage, StepControl

from training.swarm.cancelling import control_withdraw
from training.swarm.clock import swarm_time
from training.swarm.epoch_guard import EpochGuard
from training.swarm.others import epoch_of_half, others_epochs
from training.swarm.state_files import StateError, StateShapeError
from training.swarm.state_take import KnownState, StateFetch

PROGRESS_EXPIRES_SECONDS = 20.0
"""A peer that died is taken for alive this long; the living report at least every half of it."""
_POLL_SECONDS = 0.25
_LOOK_SECONDS = 1.0


class LeftBehind(Exception):
    """The others have finished ``epoch - 1`` while this peer still looked for them."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"others are in epoch {epoch}")
        self.epoch = epoch


class CatchingUp(hivemind.Optimizer):
    """hivemind's optimizer with its own ways to notice that others are ahead, and to follow."""

    _known: KnownState | None
    _guard: EpochGuard
    scheduled_grads: StepControl | None
    leaving: threading.Event
    is_out_of_sync: bool
    _looked_at = 0.0

    def load_state_from_peers(self) -> bool:
        """Make one attempt to take over the swarm's state; return whether it brought us up.

        hivemind's own method tries for ever, 25 times a second when a peer's model differs, and
        downloads the gradients of a peer besides, only to throw them away.

        Raises:
            StateShapeError: what peers give is of another model than this peer's.
        """
        self._drop_scheduled()
        with self._state_taken():
            if self.tracker.global_epoch - 1 <= self.local_epoch < self.tracker.global_epoch:
                self._epoch_name(self.tracker.global_epoch)
            self.tracker.report_local_progress(self.local_epoch, samples_accumulated=0)
            self.grad_averager.reset_accumulated_grads_()
        self.is_out_of_sync = self.local_epoch < self.tracker.global_epoch - 1
        return not self.is_out_of_sync

    def _look_ahead(self, control: StepControl | None) -> None:
        """Raise :class:`LeftBehind` when there is no group and most others have gone on.

        hivemind waits on, into the others' next round: this peer computes nothing for a whole
        epoch, comes out of that round one epoch behind, and so waits again, for ever.
        """
        if _has_group(control) or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        epoch = epoch_of_half(self._others_epochs())
        self._looked_at = time.monotonic()
        if epoch is not None and epoch > self.local_epoch and not _has_group(control):
            raise LeftBehind(epoch)

    def _follow_to(self, epoch: int) -> None:
        """Go on in the others' epoch. The gradients of the epoch before are kept: they are one
        update old, and so they enter the next average instead of being lost. Those of which parts
        may have been sent are not: nothing enters two averages."""
        control, self.scheduled_grads = self.scheduled_grads, None
        is_unsent = control_withdraw(control)
        left = self.local_epoch
        if epoch != left + 1 or not is_unsent:
            self.load_state_from_peers()
            return
        with self._state_taken():
            if self.local_epoch <= left:  # nobody gave its state: weights are averaged, later
                self._epoch_name(epoch)
            if self.local_epoch > left + 1:
                self.grad_averager.reset_accumulated_grads_()
            self.tracker.update_epoch(self.local_epoch)
            # Not by report_local_progress, which takes them for the work of a moment.
            self.tracker.local_progress = self.tracker._get_local_progress(
                self.local_epoch, self.grad_averager.local_samples_accumulated
            )
            self.tracker.should_report_progress.set()

    @contextmanager
    def _state_taken(self) -> Iterator[None]:
        """Make one attempt to take over a state; inside, the tracker rests and goes by it.

        Raises:
            StateShapeError: afterwards; what peers give is of another model than this peer's.
        """
        self.state_averager.step(wait_for_delayed_updates=True)
        with self.tracker.pause_updates():
            failure = self._download()
            yield
            if not self.client_mode:
                self.state_averager.state_sharing_priority = self.local_epoch
        if isinstance(failure, StateShapeError):
            raise failure

    def _has_living_peers(self) -> bool:
        """Return whether another peer's progress is fresher than half its life."""
        return bool(self._others_epochs())

    def _others_epochs(self) -> list[int]:
        horizon = swarm_time() - PROGRESS_EXPIRES_SECONDS / 2 - 1
        return others_epochs(self.dht, self.tracker.training_progress_key, horizon=horizon)

    def _epoch_name(self, epoch: int) -> None:
        self.state_averager.local_epoch = epoch
        self.state_averager._update_scheduler()

    def _download(self) -> Exception | None:
        """Download the state in a thread, so that a peer that leaves need not wait for it.
        Return what went wrong, if something did."""
        fetch = StateFetch(self.state_averager, known=self._known, timeout=self.load_state_timeout)
        fetch.start()
        while fetch.is_alive() and not self.leaving.is_set():
            fetch.join(_POLL_SECONDS)
        if isinstance(fetch.failure, StateError):
            self._guard.note(f"no state is taken over: {fetch.failure}")
        return fetch.failure

    def _drop_scheduled(self) -> None:
        if self.scheduled_grads is not None and not self.scheduled_grads.done():
            # Others may have planned with us: go along with weight 0 rather than break the round.
            self._tag_along_with_zero_weight(self.scheduled_grads)
        self.scheduled_grads = None


def _has_group(control: Any) -> bool:
    """Whether there is a group, or was: a round may begin and end while the others are asked."""
    if control is None:
        return False
    is_found = control.stage is AveragingStage.AWAITING_TRIGGER
    return is_found or bool(control.began_allreduce)
