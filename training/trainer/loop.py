"""The training loop."""

import random
import time
from collections.abc import Iterator

import torch

from training.client.errors import ClientError, ExitCode
from training.client.status import StatusFile
from training.protocol.metrics import PeerMetrics
from training.protocol.states import PeerState
from training.swarm.dht import SwarmError
from training.swarm.optimizer import SwarmOptimizer
from training.tasks.task import Batch, Task
from training.trainer.devices import Place
from training.trainer.guard import WeightGuard, gradients_are_finite
from training.trainer.member import PAUSE_SECONDS, MemberLoop
from training.trainer.publisher import Publisher
from training.trainer.session import TrainerSession, TrainerUI

_MAX_BAD_STEPS = 50
_MAX_LOST_STATES = 8
_LAST_EPOCH_SECONDS = 90.0
"""How long a trainer stays after the last epoch, for others to take its state."""


class TrainingLoop(MemberLoop):
    """Trains until it is told to stop or the run has reached its last epoch."""

    def __init__(
        self,
        *,
        session: TrainerSession,
        task: Task,
        model: torch.nn.Module,
        place: Place,
        batches: Iterator[Batch],
        optimizer: SwarmOptimizer,
        publisher: Publisher[PeerMetrics],
        status: StatusFile,
        ui: TrainerUI,
    ) -> None:
        super().__init__(
            session=session, optimizer=optimizer, publisher=publisher, status=status, ui=ui
        )
        self._task, self._model, self._place, self._batches = task, model, place, batches
        self._guard = WeightGuard(optimizer.opt, optimizer.state_averager.lock_averaged_tensors)
        self._bad_steps = 0
        self._epoch = optimizer.local_epoch

    @property
    def samples_total(self) -> int:
        return self._book.samples_total

    def run(self) -> None:
        """Train.

        Raises:
            ClientError: this machine computes nothing usable.
            SwarmError: the swarm is ahead, and its state could not be had: enter anew.
        """
        control, optimizer = self._session.control, self._optimizer
        optimizer.on_averaging = lambda: self._enter_state(PeerState.AVERAGING)
        optimizer.tracker.performance_ema.reset_timer()
        self._model.train()
        self._book.clock.restart()
        self._enter_state(PeerState.TRAINING)
        for batch in self._batches:
            self._swarm_require()
            if control.is_paused:
                self._pause()
            if control.stopping.is_set():
                break
            if control.reload_taken():
                self._resynchronise("the site asks for it")
            with self._book.clock.computing():
                samples = self._micro_step(batch)
            if samples:
                optimizer.step(batch_size=samples)
                optimizer.zero_grad()
                self._after_step()
                if optimizer.is_out_of_sync:
                    self._resynchronise("the swarm is ahead")
            if self._is_last_epoch():
                self._linger()
                break
        self._guard.close()
        self._enter_state(PeerState.LEFT)

    def _micro_step(self, batch: Batch) -> int:
        """Add a batch's gradients; return its number of samples, 0 when they do not count."""
        with self._place.autocast():
            loss, samples = self._task.loss(self._model, self._place.move(batch))
        loss.backward()
        value = float(loss.item())
        if not gradients_are_finite(self._model, value):
            self._drop_step(value)
            return 0
        self._bad_steps = 0
        self._book.micro_step(value, samples)
        return samples

    def _drop_step(self, loss: float) -> None:
        self._optimizer.zero_grad()
        self._bad_steps += 1
        if not self._guard.check():
            self._optimizer.weights_apply()
            self._ui.line("The weights were not finite: the last finite ones are back.")
        if self._bad_steps == 1:
            self._ui.line(f"A micro-step was dropped: its loss ({loss}) or gradient is not finite.")
        if self._bad_steps >= _MAX_BAD_STEPS:
            raise ClientError(
                "numbers_not_finite",
                f"{_MAX_BAD_STEPS} micro-steps in a row gave numbers that are not finite",
                "Check this machine's memory and GPU; beeyard doctor lists what it sees.",
                exit_code=ExitCode.HARDWARE,
            )

    def _after_step(self) -> None:
        finished, self._optimizer.finished = self._optimizer.finished, []
        for epoch in finished:
            self._book.epoch_finished(epoch)
            loss = self._book.losses.loss
            self._ui.line(
                f"epoch {epoch.epoch} finished: loss {loss or 0.0:.4f}, {epoch.samples} samples of "
                f"this device, averaged by {epoch.group_size or 1} in {epoch.seconds:.1f} s"
            )
            self._tell_notes(epoch.epoch, epoch.notes)
        if self._optimizer.local_epoch != self._epoch:
            self._epoch = self._optimizer.local_epoch
            if not finished:
                self._book.losses.epoch_end()
                self._ui.line(f"took over the swarm's state of epoch {self._epoch}")
                self._guard.keep()
                self._tell_notes(self._epoch, self._optimizer.notes_taken())
        if self._book.state is not PeerState.TRAINING:
            self._enter_state(PeerState.TRAINING)
        else:
            self._tell()

    def _resynchronise(self, reason: str) -> None:
        """Take over the swarm's state, in a bounded number of attempts."""
        control = self._session.control
        self._enter_state(PeerState.SYNCING)
        self._ui.line(f"loading the swarm's state: {reason}")
        for _ in range(_MAX_LOST_STATES):
            if self._optimizer.load_state_from_peers() or control.stopping.is_set():
                break
            control.wait(random.uniform(1.0, 3.0))  # noqa: S311 - only spreads peers
        else:
            raise SwarmError(
                "the swarm is ahead and no peer gave its state",
                "The trainer leaves and enters again; if it goes on, look into swarm.log.",
            )
        self._optimizer.zero_grad()
        self._after_step()

    def _linger(self) -> None:
        """Stay, without training, until the last state has surely been saved."""
        control = self._session.control
        control.run_is_over = True
        self._ui.line("The run's last epoch is finished; giving its state to whoever asks.")
        end = time.monotonic() + _LAST_EPOCH_SECONDS
        while time.monotonic() < end and not control.stopping.is_set():
            self._tell()
            control.wait(PAUSE_SECONDS)
