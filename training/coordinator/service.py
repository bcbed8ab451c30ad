"""The coordinator: bootstrap peer, witness of the swarm, keeper of checkpoints.

It looks at the swarm every few seconds and tells the site; it decides nothing about gradients,
and training goes on without it. The main thread looks; the threads ``reporter``, ``keeper`` and
``entrances`` do everything that may have to wait.
"""

import logging
import os
import signal
import threading
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

from training.client.errors import ClientError, ExitCode
from training.client.gate import gate_for
from training.client.refusals import refusal_error
from training.client.status import StatusFile
from training.coordinator.checkpoints import CheckpointStore
from training.coordinator.entrances import Entrances
from training.coordinator.keeper import Keeper
from training.coordinator.known_peers import KnownPeers
from training.coordinator.report import Reporter, SnapshotNumber
from training.coordinator.session import CoordinatorSession
from training.coordinator.start import dht_join, donor_make
from training.coordinator.watch import Senses, Sight, Watch
from training.protocol.admission import Verdict
from training.protocol.states import Role
from training.swarm.clock import swarm_clock_set, swarm_now
from training.swarm.dht import SwarmError, dht_stop, metrics_read, visible_addresses
from training.swarm.donor import Donor
from training.swarm.processes import swarm_log_to
from training.swarm.recorder import ProgressReader, ProgressRecorder
from training.swarm.records import ProgressRecord
from training.swarm.watch import GateWatch
from training.tasks.task import TaskError

logger = logging.getLogger(__name__)
_READ_SECONDS = 5.0
_MAX_FAILURES = 4
_LAST_CHECKPOINT_SECONDS = 8.0
_LAST_REPORT_SECONDS = 3.0


def coordinator_run(session: CoordinatorSession) -> int:
    """Coordinate a run until SIGTERM or SIGINT; return the exit code.

    A second signal ends the process at once. What went wrong is in ``status.json`` and the log.
    Call this in the main thread.
    """
    session.work_dir.mkdir(parents=True, exist_ok=True)
    swarm_log_to(session.work_dir / "swarm.log")
    status = StatusFile(session.work_dir, role=Role.COORDINATOR, peer_id=session.key.peer_id)
    stop = StopSignal()
    stop.listen()
    status.start()
    try:
        return _in_swarm(session, status, stop)
    except (SwarmError, TaskError) as error:
        failure = ClientError(
            "coordinator_failed", error.detail, error.remedy, exit_code=ExitCode.UNREACHABLE
        )
        status.fail(failure)
        logger.error("run %s: %s. %s", session.config.run, error.detail, error.remedy)
        return int(failure.exit_code)
    finally:
        status.stop()


def _in_swarm(session: CoordinatorSession, status: StatusFile, stop: "StopSignal") -> int:
    status.update(phase="joining")
    recorder = ProgressRecorder(session.config.swarm_id)
    known = KnownPeers(
        session.work_dir / "known_peers.json",
        own_peer_id=session.key.peer_id,
        given=session.bootstrap_peers,
    )
    swarm_clock_set(session.clock.correction)
    dht = dht_join(session, recorder, known.addresses)
    donor: Donor | None = None
    watch = GateWatch(
        dht,
        key=session.key,
        gate=gate_for(session.config, session.gate),
        clock=session.clock,
        spreads_list=True,
        revoked=stop.revoke,
    )
    try:
        watch.look()
        donor = donor_make(session, dht)
        # hivemind's averager takes Ctrl-C away from the process that makes it.
        stop.listen()
        watch.start()
        Coordinator(session, dht, donor=donor, recorder=recorder, known=known, status=status).run(
            stop
        )
        if stop.is_revoked:
            refusal = refusal_error(Verdict.PEER_REVOKED)
            raise SwarmError(refusal.detail, refusal.remedy)
        return int(ExitCode.FINE)
    finally:
        status.update(phase="leaving")
        watch.stop()
        if donor is not None:
            donor.stop()
        dht_stop(dht)
        recorder.close()


class StopSignal:
    """SIGTERM and SIGINT: once to leave well, twice to end at once."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.is_revoked = False
        """The site took this coordinator's access away."""

    def revoke(self) -> None:
        """Leave because the site's list of revoked peers names us."""
        self.is_revoked = True
        self._event.set()

    def listen(self) -> None:
        """Take the signals; again after something else took them."""
        signal.signal(signal.SIGTERM, self._received)
        signal.signal(signal.SIGINT, self._received)

    def wait(self, seconds: float) -> bool:
        """Wait; tell whether it is time to leave."""
        return self._event.wait(seconds)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self._event.is_set():
            os._exit(128 + number)
        self._event.set()


class Coordinator:
    """The parts of a coordinator that is in the swarm, and its loop."""

    def __init__(
        self,
        session: CoordinatorSession,
        dht: Any,
        *,
        donor: Donor,
        recorder: ProgressRecorder,
        known: KnownPeers,
        status: StatusFile,
    ) -> None:
        config, work_dir = session.config, session.work_dir
        self._config, self._status, self._is_done = config, status, False
        self._dht, self._gate = dht, session.gate
        self._reporter = Reporter(
            sign=session.sign,
            post=session.post_snapshot,
            number=SnapshotNumber(work_dir / "snapshot_number.json"),
        )
        self._keeper = Keeper(
            config=config,
            store=CheckpointStore(session.checkpoints_dir, config=config, sign=session.sign),
            donor=donor,
            post=session.post_checkpoint,
            work_dir=work_dir,
        )
        self._entrances = Entrances(dht, known, run_id=config.swarm_id)
        self._watch = Watch(
            config=config,
            senses=_senses(session, dht, recorder, self._entrances),
            journal=work_dir / _journal_name(config.lineage),
            last_epoch=self._keeper.restore() or 0,
        )

    def run(self, stop: StopSignal) -> None:
        """Look, tell, wait, until it is time to leave."""
        for part in (self._reporter, self._keeper, self._entrances):
            part.start()
        try:
            while True:
                self._check_alive()
                self._step()
                if stop.wait(self._config.report.snapshot_seconds):
                    break
        finally:
            self._leave()

    def _check_alive(self) -> None:
        """Give up when our own peer is gone: whoever supervises us starts a new process.

        Raises:
            SwarmError: the DHT's process ended, or p2pd has not answered for long.
        """
        if not self._dht.is_alive() or self._entrances.num_failures >= _MAX_FAILURES:
            raise SwarmError(
                "the coordinator's peer-to-peer process ended", "Start the coordinator again."
            )

    def _step(self) -> None:
        """One look. Whatever fails, the next one comes: the last good picture stands."""
        try:
            response = self._reporter.response
            if response is not None and response.revocations and self._gate is not None:
                self._gate.revocations_take(response.revocations)
            sight = self._watch.look(
                swarm_now(), acknowledged=response.last_epoch if response else None
            )
            self._tell(sight)
            error = sight.trouble or self._reporter.error or self._keeper.error
        except Exception as failure:  # noqa: BLE001 - one failed look must not end the run's record
            logger.warning("run %s: look failed: %r", self._config.run, failure)
            error = failure
        self._status.fail(None if error is None else _told(error))

    def _tell(self, sight: Sight) -> None:
        figures = sight.figures
        self._reporter.offer(sight.snapshot)
        self._keeper.look(figures.epoch if figures.num_live else None)
        self._status.update(
            phase="training" if figures.num_live else "waiting",
            epoch=figures.epoch,
            samples_per_second=figures.samples_per_second,
            loss=figures.loss,
        )
        last = self._config.max_epochs
        if last is not None and figures.epoch >= last and not self._is_done:
            self._is_done = True
            logger.info("run %s: all %d epochs are done; the site decides", self._config.run, last)
        if sight.num_finished:
            logger.info(
                "run %s: epoch %d, %d trainers", self._config.run, figures.epoch, figures.num_live
            )

    def _leave(self) -> None:
        self._status.update(phase="leaving")
        self._keeper.finish()
        self._step()
        self._reporter.flush(_LAST_REPORT_SECONDS)
        self._keeper.wait(_LAST_CHECKPOINT_SECONDS)
        self._entrances.stop()
        self._reporter.stop()


def _senses(
    session: CoordinatorSession, dht: Any, recorder: ProgressRecorder, entrances: Entrances
) -> Senses:
    reader = ProgressReader(session.key)

    def progress() -> Sequence[ProgressRecord]:
        records = (reader.read(raw) for raw in recorder.drain())
        return [record for record in records if record is not None]

    return Senses(
        progress=progress,
        metrics=partial(metrics_read, dht, run_id=session.config.swarm_id, timeout=_READ_SECONDS),
        direct=lambda: entrances.direct,
        own_addresses=visible_addresses(dht),
    )


def _journal_name(lineage: int) -> str:
    """Each lineage counts its epochs for itself."""
    return "journal.json" if lineage == 1 else f"journal-{lineage}.json"


def _told(error: Exception) -> ClientError:
    """Return an error of the loop in words for ``status.json``."""
    if isinstance(error, ClientError):
        return error
    return ClientError(
        "coordinator_hindered",
        str(error) or type(error).__name__,
        "The coordinator goes on and tries again; its log has more.",
        exit_code=ExitCode.FAILED,
    )
