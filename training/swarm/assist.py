"""The optimizer of an auxiliary peer: it averages what others send and has no samples itself."""

from typing import Any

from training.swarm.cancelling import control_cancel
from training.swarm.optimizer import SwarmOptimizer


class AssistingOptimizer(SwarmOptimizer):
    """Takes part in rounds of gradients with no gradients of its own; :meth:`assist` often.

    Averages do not come back to a peer that sends nothing, so its weights are never the swarm's:
    it neither takes over the swarm's state nor gives its own to anybody. All that it keeps is the
    number of the epoch, and there it goes by what trainers report.
    """

    assists = True

    def assist(self) -> None:
        """Look how far the swarm is; average with it when its epoch is full."""
        self._follow()
        self.step()

    def load_state_from_peers(self) -> bool:
        """Take over the number of the swarm's epoch, which is the whole state of this peer."""
        self._follow()
        return True

    def _follow(self) -> None:
        epoch = self.tracker.global_epoch
        if epoch <= self.local_epoch:
            return
        # The trainers' round is over: whoever is still looked for would be of the next one.
        control, self.scheduled_grads = self.scheduled_grads, None
        control_cancel(control)
        with self.tracker.pause_updates():
            self._epoch_set(epoch)

    def _update_global_epoch(self, grad_scaler: Any) -> None:
        epoch, num_finished = self.local_epoch, len(self.finished)
        super()._update_global_epoch(grad_scaler)
        if len(self.finished) == num_finished or self.finished[-1].group_size > 1:
            return
        # hivemind counts an epoch for whoever failed to find the others, too. A trainer has its
        # own gradients to show for it; this peer would only be ahead of everybody.
        self.finished.pop()
        with self.tracker.pause_updates():
            self.tracker.global_progress.epoch = epoch
            self._epoch_set(epoch)

    def _follow_to(self, epoch: int) -> None:
        with self.tracker.pause_updates():
            self.tracker.update_epoch(epoch)
        self._follow()

    def _epoch_set(self, epoch: int) -> None:
        self._epoch_name(epoch)
        self.tracker.report_local_progress(epoch, samples_accumulated=0)
