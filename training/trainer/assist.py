"""The loop of an auxiliary peer: no data and no gradients, only others' averages."""

from training.protocol.states import PeerState
from training.swarm.assist import AssistingOptimizer
from training.trainer.member import MemberLoop

_LOOK_SECONDS = 0.2
"""An epoch is full when a trainer's micro-step fills it: this peer must not be the last to see."""


class AssistingLoop(MemberLoop):
    """Assists until it is told to stop or the run has reached its last epoch."""

    def run(self) -> None:
        """Assist."""
        control, optimizer = self._session.control, self._optimizer
        if not isinstance(optimizer, AssistingOptimizer):
            raise TypeError("the optimizer of a trainer does not assist")
        optimizer.on_averaging = lambda: self._enter_state(PeerState.AVERAGING)
        self._book.clock.restart()
        self._enter_state(PeerState.TRAINING)
        while not control.stopping.is_set():
            self._swarm_require()
            if control.is_paused:
                self._pause()
            control.reload_taken()  # there is no state to load
            optimizer.assist()
            self._after_step()
            if self._is_last_epoch():
                control.run_is_over = True
                break
            control.wait(_LOOK_SECONDS)
        self._enter_state(PeerState.LEFT)

    def _after_step(self) -> None:
        finished, self._optimizer.finished = self._optimizer.finished, []
        for epoch in finished:
            self._book.epoch_finished(epoch)
            self._ui.line(
                f"epoch {epoch.epoch} finished: averaged by {epoch.group_size} "
                f"in {epoch.seconds:.1f} s, with the help of this device"
            )
            self._tell_notes(epoch.epoch, epoch.notes)
        if self._book.state is not PeerState.TRAINING:
            self._enter_state(PeerState.TRAINING)
        else:
            self._tell()
