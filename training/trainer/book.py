"""The trainer's own account of what it did: losses, samples, finished epochs."""

from collections import deque

from training.protocol.metrics import (
    MAX_RECENT,
    MAX_ROUNDS,
    EpochSamples,
    EpochTiming,
    PeerMetrics,
    RoundSeen,
)
from training.protocol.names import TRAINER_VERSION
from training.protocol.rounds import round_seen, rounds_that_fit
from training.protocol.states import PeerState
from training.swarm.clock import swarm_now
from training.swarm.optimizer import FinishedEpoch, SwarmOptimizer
from training.trainer.session import TrainerSession, TrainerStats
from training.trainer.timing import EpochClock

_TIMED_EPOCHS = 2
"""Reports go out every few seconds, epochs take longer; what is told of them has to be short."""


class LossMeter:
    """Mean loss per sample over the last finished epoch; before one, so far."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._samples = 0
        self._steps = 0
        self._last: tuple[float, int] | None = None

    def add(self, loss: float, samples: int) -> None:
        """Count a micro-step with its mean loss."""
        self._sum += loss * samples
        self._samples += samples
        self._steps += 1

    def epoch_end(self) -> None:
        """Begin a new mean; an epoch without own samples keeps the one before."""
        if self._samples:
            self._last = (self._sum / self._samples, self._steps)
        self._sum, self._samples, self._steps = 0.0, 0, 0

    @property
    def loss(self) -> float | None:
        if self._last is not None:
            return self._last[0]
        return self._sum / self._samples if self._samples else None

    @property
    def num_steps(self) -> int:
        """Micro-steps behind :attr:`loss`."""
        return self._last[1] if self._last is not None else self._steps


class Book:
    """Everything that is told about this trainer comes from here."""

    def __init__(self, session: TrainerSession, optimizer: SwarmOptimizer) -> None:
        self._session, self._optimizer = session, optimizer
        self._recent: deque[EpochSamples] = deque(maxlen=MAX_RECENT)
        self._rounds: deque[RoundSeen] = deque(maxlen=MAX_ROUNDS)
        self._timings: deque[EpochTiming] = deque(maxlen=_TIMED_EPOCHS)
        self.clock = EpochClock()
        self.losses = LossMeter()
        self.state = PeerState.TRAINING
        self.is_paused = False
        self.samples_total = 0

    def micro_step(self, loss: float, samples: int) -> None:
        self.losses.add(loss, samples)
        self.samples_total += samples

    def epoch_finished(self, finished: FinishedEpoch) -> None:
        self._timings.append(self.clock.epoch_end(finished))
        # Also 0: a round that failed for us is told apart from one that a process before us was in.
        self._recent.append(EpochSamples(epoch=finished.epoch, samples=finished.samples))
        if finished.group_size:
            own, size = self._session.key.peer_id, finished.group_size
            seen = round_seen(finished.epoch, finished.weights, own=own, group_size=size)
            self._rounds.append(seen)
        self.losses.epoch_end()

    @property
    def samples_per_second(self) -> float:
        speed = self._optimizer.tracker.performance_ema
        return 0.0 if self.is_paused or not speed.num_updates else float(speed.samples_per_second)

    def metrics(self) -> PeerMetrics:
        """Return the report that is signed and published."""
        config, progress = self._session.config, self._optimizer.local_progress
        gate = self._session.gate
        return PeerMetrics(
            run=config.run,
            lineage=config.lineage,
            peer_id=self._session.key.peer_id,
            role=self._session.role,
            state=self.state,
            config_version=config.version,
            epoch=self._optimizer.local_epoch,
            samples_accumulated=progress.samples_accumulated,
            samples_total=self.samples_total,
            samples_per_second=self.samples_per_second,
            loss=self.losses.loss,
            mini_steps=self.losses.num_steps,
            learning_rate=float(self._optimizer.opt.param_groups[0]["lr"]),
            recent=tuple(self._recent),
            rounds=rounds_that_fit(tuple(self._rounds)),
            timings=tuple(self._timings),
            trainer_version=TRAINER_VERSION,
            client_mode=self._session.client_mode,
            revocations_seq=0 if gate is None else gate.view.revocations_seq,
            taken_at=swarm_now(),
        )

    def stats(self) -> TrainerStats:
        """Return what the person at this machine sees."""
        tracker = self._optimizer.tracker
        own = self._optimizer.local_progress.samples_accumulated
        return TrainerStats(
            phase="paused" if self.is_paused else str(self.state),
            epoch=self._optimizer.local_epoch,
            num_peers=self._optimizer.num_peers,
            samples_epoch=max(own, int(tracker.global_progress.samples_accumulated)),
            target_batch_size=tracker.target_batch_size,
            samples_own=own,
            samples_total=self.samples_total,
            samples_per_second=self.samples_per_second,
            loss=self.losses.loss,
        )
