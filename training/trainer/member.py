"""What the loops of trainers and of auxiliary peers share: telling, pausing, and the end."""

from training.client.status import StatusFile
from training.protocol.metrics import PeerMetrics
from training.protocol.states import PeerState
from training.swarm.dht import SwarmError
from training.swarm.optimizer import SwarmOptimizer
from training.trainer.book import Book
from training.trainer.publisher import Publisher
from training.trainer.session import TrainerSession, TrainerUI

PAUSE_SECONDS = 2.0


class MemberLoop:
    """A peer in the swarm that does as it is told and says what it does."""

    def __init__(
        self,
        *,
        session: TrainerSession,
        optimizer: SwarmOptimizer,
        publisher: Publisher[PeerMetrics],
        status: StatusFile,
        ui: TrainerUI,
    ) -> None:
        self._session, self._optimizer, self._publisher = session, optimizer, publisher
        self._status, self._ui = status, ui
        self._book = Book(session, optimizer)

    def run(self) -> None:
        """Take part until there is no more to do."""
        raise NotImplementedError

    def _swarm_require(self) -> None:
        """Raise SwarmError when this machine's peer is no more: work would count for nothing."""
        if not self._optimizer.dht.is_alive():
            raise SwarmError(
                "the process that connects this machine with the swarm has ended",
                "The trainer enters again by itself; if it goes on, look into swarm.log.",
            )

    def _tell_notes(self, epoch: int, notes: tuple[str, ...]) -> None:
        for note in notes:
            self._ui.line(f"epoch {epoch}: {note}")

    def _enter_state(self, state: PeerState) -> None:
        self._book.state = state
        self._ui.phase(state.value)
        self._tell()

    def _tell(self) -> None:
        """Put the newest numbers where publisher, heartbeat, status file and person find them."""
        book, epoch = self._book, self._optimizer.local_epoch
        self._session.control.report(
            epoch=epoch, samples_total=book.samples_total, state=book.state
        )
        stats = book.stats()
        self._publisher.offer(book.metrics())
        self._status.update(
            phase="leaving" if book.state is PeerState.LEFT else stats.phase,
            epoch=epoch,
            samples_total=book.samples_total,
            samples_per_second=book.samples_per_second,
            loss=book.losses.loss,
        )
        self._ui.progress(stats)

    def _pause(self) -> None:
        control = self._session.control
        self._book.is_paused = True
        self._ui.phase("paused")
        with self._book.clock.pausing():
            while control.is_paused and not control.stopping.is_set():
                self._swarm_require()
                self._tell()
                control.wait(PAUSE_SECONDS)
        self._book.is_paused = False
        self._optimizer.tracker.performance_ema.reset_timer()
        self._enter_state(PeerState.TRAINING)

    def _is_last_epoch(self) -> bool:
        last = self._session.config.max_epochs
        return last is not None and self._optimizer.local_epoch >= last
