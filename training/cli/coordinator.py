"""``beeyard coordinator``: the run's bootstrap peer, witness and keeper of checkpoints."""

import logging
import os
import signal
from contextlib import closing
from pathlib import Path

from training.cli.arguments import Arguments
from training.cli.logs import log_file_open, logging_to
from training.cli.output import Output
from training.cli.seat import (
    Seat,
    bind_address,
    gate_open,
    is_restart_needed,
    process_restart,
    seat_open,
)
from training.client.entrances import entrances_write
from training.client.errors import ClientError, ExitCode
from training.client.files import folder_make
from training.client.heartbeat import Heartbeat, HeartbeatEvents
from training.client.http import PlatformClient
from training.client.join import Admission
from training.client.retry import Retry
from training.client.store import run_locked
from training.protocol.api import (
    CheckpointOut,
    CheckpointRequest,
    PassRequest,
    SnapshotRequest,
    SnapshotResponse,
)
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import Role, RunState

_log = logging.getLogger(__name__)
_OVER = frozenset({RunState.FINISHED, RunState.ARCHIVED})


class SiteLine:
    """The coordinator's calls of the site, with an ear for what the answers say.

    A new config or the end of the run ends the process by its own SIGTERM: the coordinator
    leaves well, and ``outcome`` says what comes next.
    """

    def __init__(self, seat: Seat, admission: Admission) -> None:
        self._seat = seat
        self._config = admission.config.body
        self._seen_version = self._config.version
        # The reporter has a back-off of its own and wants to know of failures at once.
        self._client = PlatformClient(
            seat.address,
            credentials=seat.credentials,
            retry=Retry(0.0),
            clock=seat.client.clock,
        )
        self._runs = f"/runs/{seat.address.slug}"
        self.gate = gate_open(seat, admission)
        # Nothing but the heartbeat renews a pass, and a coordinator is a peer like others.
        events = HeartbeatEvents(
            progress=lambda: PassRequest(trainer_version=TRAINER_VERSION),
            command=lambda _: None,
            config=lambda _: None,
            refused=lambda error: _log.warning("run %s: %s", self._config.run, error.detail),
        )
        self._heartbeat = Heartbeat(seat.joiner, admission, events, gate=self.gate)
        self.outcome: ExitCode | None = None
        self.is_restart = False

    def start(self) -> None:
        """Begin to renew the pass."""
        self._heartbeat.start()

    def post_snapshot(self, request: SnapshotRequest) -> SnapshotResponse:
        answer = self._client.post(f"{self._runs}/snapshots/", request, SnapshotResponse)
        if answer.state in _OVER:
            self._leave(ExitCode.RUN_OVER)
        elif answer.config_version > self._seen_version:
            self._config_changed()
        return answer

    def post_checkpoint(self, request: CheckpointRequest) -> CheckpointOut:
        return self._client.post(f"{self._runs}/checkpoints/", request, CheckpointOut)

    def close(self) -> None:
        """End the heartbeat and close idle connections."""
        self._heartbeat.stop()
        self._client.close()

    def _config_changed(self) -> None:
        try:
            new = self._seat.joiner.config_read().body
        except ClientError as error:
            _log.warning("run %s: the new config is not usable: %s", self._config.run, error.detail)
            return
        self._seen_version = new.version
        if is_restart_needed(self._config, new):
            _log.info("run %s: config version %d, starting anew", new.run, new.version)
            self.is_restart = True
            self._leave(ExitCode.FINE)

    def _leave(self, outcome: ExitCode) -> None:
        if self.outcome is None:
            self.outcome = outcome
            os.kill(os.getpid(), signal.SIGTERM)


def coordinator(args: Arguments, out: Output) -> int:
    """Coordinate until stopped; a new config begins in a fresh interpreter."""
    with seat_open(args, role=Role.COORDINATOR) as seat:
        log = log_file_open(seat.home.logs, f"coordinator-{seat.address.slug}")
        with logging_to(log, also_stdout=True), run_locked(seat.joiner.folder):
            admission = seat.joiner.join()
            entrances_write(seat.joiner.folder, admission.bootstrap_peers)
            config = admission.config.body
            out.tell(
                f"coordinating {config.run}, config version {config.version}, "
                f"as {admission.username}"
            )
            with closing(SiteLine(seat, admission)) as line:
                line.start()
                code = _run(args, seat, admission, line)
    if line.is_restart:
        process_restart(0)
    return int(line.outcome or code)


def _run(args: Arguments, seat: Seat, admission: Admission, line: SiteLine) -> int:
    from training.coordinator.service import coordinator_run  # loads torch and hivemind
    from training.coordinator.session import CoordinatorSession

    session = CoordinatorSession(
        config=admission.config.body,
        key=seat.home.swarm_key(),
        sign=seat.sign,
        post_snapshot=line.post_snapshot,
        post_checkpoint=line.post_checkpoint,
        bootstrap_peers=admission.bootstrap_peers,
        artifacts=admission.artifacts,
        work_dir=seat.joiner.folder,
        checkpoints_dir=folder_make(Path(args.checkpoints).expanduser().resolve()),
        gate=line.gate,
        clock=seat.client.clock,
        bind=bind_address(args, seat.address),
        port=args.port or 0,
    )
    return coordinator_run(session)
