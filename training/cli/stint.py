"""One stint: from joining to leaving a run, and the judgement of how it ended."""

import logging
from dataclasses import dataclass

from training.cli.admit import admit, entrances_wait
from training.cli.arguments import Arguments
from training.cli.output import Output
from training.cli.screen import Screen, screen_open
from training.cli.seat import Seat, bind_address, gate_open, is_restart_needed
from training.cli.signals import StopSignals
from training.client.errors import ClientError, ExitCode
from training.client.heartbeat import Heartbeat, HeartbeatEvents
from training.client.join import Admission
from training.client.refusals import PASSING
from training.client.status import StatusFile
from training.protocol.config import RunConfig
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_METRICS
from training.protocol.states import Command
from training.trainer.control import TrainerControl
from training.trainer.session import TrainerSession

_log = logging.getLogger(__name__)
_WAITED_OUT = PASSING | {ErrorCode.RUN_NOT_OPEN, ErrorCode.CONFIG_MISSING, ErrorCode.NOT_JOINED}
"""Refusals that pass by themselves once a device was in the run."""


@dataclass(frozen=True)
class StintEnd:
    """How a stint ended."""

    code: ExitCode
    error: ClientError | None = None
    is_passing: bool = False
    """Whether to begin again."""
    is_restart: bool = False
    """Whether to do so at once, as for a new config."""


def stint_run(
    args: Arguments, seat: Seat, out: Output, signals: StopSignals, *, has_trained: bool
) -> StintEnd:
    """Join and train until something ends it; never raises."""
    peer_id = ""
    try:
        peer_id = seat.home.swarm_key().peer_id
        status = StatusFile(seat.joiner.folder, role=seat.joiner.role, peer_id=peer_id)
        status.update(phase="joining")
        status.start()
        try:
            admission = admit(seat, out, signals.stop)
            admission = entrances_wait(seat, admission, signals.stop)
        finally:
            status.stop()  # from here on the trainer writes the file
        has_trained = True
        return _Stint(args, seat, admission, out, signals).run()
    except ClientError as error:
        return StintEnd(error.exit_code, error, is_passing=has_trained and _may_pass(error))
    except Exception as error:  # noqa: BLE001 - the log has the traceback, people get a sentence
        _log.exception("run %s: peer %s broke", seat.address.slug, peer_id)
        return StintEnd(ExitCode.FAILED, _broken(error, seat), is_passing=has_trained)


class _Stint:
    """A trainer with its heartbeat."""

    def __init__(
        self,
        args: Arguments,
        seat: Seat,
        admission: Admission,
        out: Output,
        signals: StopSignals,
    ) -> None:
        self._args, self._seat, self._admission = args, seat, admission
        self._out, self._signals = out, signals
        self._control = TrainerControl()
        self._seen_version = admission.config.body.version
        self._refusal: ClientError | None = None
        self._is_restart = self._is_upgrade_told = False
        self._screen: Screen | None = None
        self._gate = gate_open(seat, admission)
        self._heartbeat = Heartbeat(
            seat.joiner,
            admission,
            HeartbeatEvents(
                progress=self._control.progress,
                command=self._command,
                config=self._config,
                refused=self._refused,
                counted=self._say,
                message=self._say,
            ),
            gate=self._gate,
        )

    def run(self) -> StintEnd:
        """Train until stopped from here, from the site, or by a failure."""
        self._signals.on_first(self._leave)
        if self._signals.stop.is_set():
            return StintEnd(ExitCode.FINE)
        self._say("Loading torch and hivemind.")
        from training.trainer.run import trainer_run

        self._heartbeat.start()
        try:
            with screen_open(self._out, plain=self._args.plain) as screen:
                self._screen = screen
                code = trainer_run(self._session(), ui=screen)
        except ClientError as error:
            if not self._is_ended_from_outside():
                raise self._in_the_sites_words(error) from error
            code = ExitCode.FINE
        finally:
            self._screen = None
            self._heartbeat.stop()
        return self._judge(code)

    def _session(self) -> TrainerSession:
        args, admission = self._args, self._admission
        return TrainerSession(
            config=admission.config.body,
            key=self._seat.home.swarm_key(),
            sign_metrics=lambda metrics: self._seat.sign(metrics, TYP_METRICS),
            bootstrap_peers=admission.bootstrap_peers,
            min_epoch=admission.min_epoch,
            checkpoint=admission.checkpoint,
            artifacts=admission.artifacts,
            work_dir=self._seat.joiner.folder,
            bind=bind_address(args, self._seat.address),
            port=args.port or 0,
            client_mode=args.client_mode,
            role=self._seat.joiner.role,
            threads=args.threads,
            micro_batch=args.micro_batch,
            control=self._control,
            gate=self._gate,
            clock=self._seat.client.clock,
            bootstrap_refresh=self._bootstrap_refresh,
        )

    def _judge(self, code: int) -> StintEnd:
        if self._signals.stop.is_set():
            return StintEnd(ExitCode.FINE)
        if self._refusal is not None:
            may_pass = _may_pass(self._refusal)
            return StintEnd(self._refusal.exit_code, self._refusal, is_passing=may_pass)
        if self._control.run_is_over:
            self._out.tell("The run has finished. Thank you.", event="run_over")
            return StintEnd(ExitCode.RUN_OVER)
        if self._is_restart:
            return StintEnd(ExitCode.FINE, is_passing=True, is_restart=True)
        ended = ExitCode(code)
        return StintEnd(ended, is_passing=ended in (ExitCode.UNREACHABLE, ExitCode.FAILED))

    def _in_the_sites_words(self, error: ClientError) -> ClientError:
        """Peers know only that this one is shut out; the site says why."""
        if error.code == ErrorCode.PEER_REVOKED:
            try:
                self._heartbeat.beat()
            except ClientError as told:
                return told if told.exit_code == ExitCode.NOT_ALLOWED else error
        return error

    def _is_ended_from_outside(self) -> bool:
        """Whether somebody wanted the end: how the trainer then fell matters no more."""
        return self._signals.stop.is_set() or self._refusal is not None or self._is_restart

    def _leave(self) -> None:
        self._say(LEAVING)
        self._control.stop()

    def _command(self, command: Command) -> None:
        if command is not Command.UPGRADE:
            self._control.command(command)
        elif not self._is_upgrade_told:
            self._is_upgrade_told = True
            self._say("A newer beeyard is out: stop, pip install --upgrade beeyard, join again.")

    def _config(self, version: int) -> None:
        """Take up a newer config; the trainer begins anew only when it has to."""
        if version <= self._seen_version:
            return
        try:
            new: RunConfig = self._seat.joiner.config_read().body
        except ClientError as error:
            if error.exit_code != ExitCode.UNREACHABLE:
                self._refused(error)
            return
        self._seen_version = new.version
        if is_restart_needed(self._admission.config.body, new):
            self._say(f"Config version {new.version} is published: beginning anew with it.")
            self._is_restart = True
            self._control.stop()

    def _refused(self, error: ClientError) -> None:
        self._refusal = error
        self._control.stop()

    def _bootstrap_refresh(self) -> tuple[str, ...]:
        try:
            self._heartbeat.beat()
        except ClientError as error:
            _log.warning("no newer entrances: %s", error.detail)
        return self._heartbeat.bootstrap_peers

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.line(text)
        else:
            self._out.tell(text, event="line")


LEAVING = "Leaving well: the current micro-step is finished first. Once more stops at once."


def _may_pass(error: ClientError) -> bool:
    return error.exit_code == ExitCode.UNREACHABLE or error.code in _WAITED_OUT


def _broken(error: Exception, seat: Seat) -> ClientError:
    what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    log = seat.home.logs / f"join-{seat.address.slug}.log"
    return ClientError(
        "trainer_broke",
        f"the trainer broke ({what})",
        f"Please report it with the end of {log}.",
        exit_code=ExitCode.FAILED,
    )
