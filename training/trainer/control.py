"""What others may tell a running trainer, and ask it, from their own threads."""

import threading
from dataclasses import dataclass

from training.client.errors import ClientError
from training.protocol.api import PassRequest
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import Command, PeerState


@dataclass(frozen=True)
class Progress:
    """How far the trainer is, as it last said."""

    epoch: int = 0
    samples_total: int = 0
    state: PeerState = PeerState.JOINING


class TrainerControl:
    """Commands in, progress out; no call ever waits for the training.

    A stop, a pause or a reload takes effect after the micro-step that is under way.
    """

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.refusal: ClientError | None = None
        """Why this peer must leave the swarm for good."""
        self.run_is_over = False
        """The organiser finished the run: the process ends for good."""
        self._paused = threading.Event()
        self._reload = threading.Event()
        self._changed = threading.Condition()
        self._progress = Progress()

    def stop(self) -> None:
        """Leave the swarm well, soon."""
        self.stopping.set()
        with self._changed:
            self._changed.notify_all()

    def refuse(self, error: ClientError) -> None:
        """Leave the swarm soon, with an error that is told."""
        self.refusal = error
        self.stop()

    def command(self, command: Command) -> None:
        """Take a command from the answer to a heartbeat. UPGRADE is for the caller."""
        if command is Command.PAUSE:
            self._paused.set()
        elif command is Command.RESUME:
            self._paused.clear()
        elif command is Command.RELOAD_STATE:
            self._reload.set()
        elif command is Command.FINISH:
            self.run_is_over = True
            self.stopping.set()
        with self._changed:
            self._changed.notify_all()

    def progress(self) -> PassRequest:
        """Return what a heartbeat reports."""
        now = self._progress
        return PassRequest(
            epoch=now.epoch,
            samples=now.samples_total,
            state=now.state,
            trainer_version=TRAINER_VERSION,
        )

    def report(
        self,
        *,
        epoch: int | None = None,
        samples_total: int | None = None,
        state: PeerState | None = None,
    ) -> None:
        """Note the trainer's progress; what is left out stays as it is."""
        now = self._progress
        self._progress = Progress(
            epoch=now.epoch if epoch is None else epoch,
            samples_total=now.samples_total if samples_total is None else samples_total,
            state=state or now.state,
        )

    @property
    def is_paused(self) -> bool:
        return self._paused.is_set()

    def reload_taken(self) -> bool:
        """Return whether a reload of the state is wanted, and take the wish as fulfilled."""
        wanted = self._reload.is_set()
        self._reload.clear()
        return wanted

    def wait(self, seconds: float) -> bool:
        """Wait until something is told or the time is over; return whether to stop."""
        with self._changed:
            if not self.stopping.is_set():
                self._changed.wait(seconds)
        return self.stopping.is_set()
