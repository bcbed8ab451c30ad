"""``beeyard join``: train in a run until stopped."""

import random
import time

from training.cli.arguments import Arguments
from training.cli.logs import log_file_open, logging_to
from training.cli.output import Output
from training.cli.seat import Seat, process_restart, restarts_read, seat_open
from training.cli.signals import StopSignals
from training.cli.stint import StintEnd, stint_run
from training.client.errors import ClientError, ExitCode
from training.client.status import StatusFile, status_read
from training.client.store import run_locked
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import Role

_FIRST_WAIT, _LONGEST_WAIT = 5.0, 300.0
_STEADY_SECONDS = 600.0
"""A stint of this length counts as a success: the next failure waits little again."""


def join(args: Arguments, out: Output) -> int:
    """Log in if needed, verify, check, train; begin again after failures that may pass."""
    role = role_of(args)
    with StopSignals() as signals, seat_open(args, role=role, stop=signals.stop) as seat:
        log = log_file_open(seat.home.logs, f"join-{seat.address.slug}")
        with logging_to(log), run_locked(seat.joiner.folder):
            if restarts_read() == 0:
                out.tell(f"beeyard {TRAINER_VERSION}, home {seat.home.root}, log {log}")
            started = time.monotonic()
            end = stint_run(args, seat, out, signals, has_trained=restarts_read() > 0)
            if signals.stop.is_set():
                out.tell("Left the run; what was counted stays counted.", event="left")
                return int(ExitCode.FINE)
            _status_fail(seat, end)
            if args.once or not end.is_passing:
                if end.error is not None:
                    raise end.error
                return int(end.code)
            is_steady = time.monotonic() - started > _STEADY_SECONDS
            restarts = 0 if is_steady or end.is_restart else restarts_read()
            if not end.is_restart and _wait(end, out, signals, restarts):
                return int(ExitCode.FINE)
    process_restart(restarts + 1)
    raise AssertionError("this process is another one now")


def role_of(args: Arguments) -> Role:
    """Return the role to join in.

    Raises:
        ClientError: an auxiliary peer that others cannot reach has nothing to do.
    """
    role = Role(args.role)
    if role is Role.AUXILIARY and args.client_mode:
        raise ClientError(
            "auxiliary_unreachable",
            "an auxiliary peer averages what others send to it, and --client-mode lets nobody in",
            "Leave out one of --client-mode and --role auxiliary.",
            exit_code=ExitCode.USAGE,
        )
    return role


def again_wait(restarts: int, chance: float) -> float:
    """Return the seconds before beginning again; ``chance`` is in [0, 1).

    The jitter keeps the trainers that one failure threw out from loading the state all at once.
    """
    return min(_LONGEST_WAIT, _FIRST_WAIT * float(2 ** min(restarts, 10))) * (0.5 + chance)


def _wait(end: StintEnd, out: Output, signals: StopSignals, restarts: int) -> bool:
    """Wait before beginning again; return whether to stop instead."""
    if end.error is not None:
        out.error(end.error)
    seconds = again_wait(restarts, random.random())  # noqa: S311
    out.tell(f"Trying again in {seconds:.0f} s.", event="waiting", seconds=seconds)
    return signals.stop.wait(seconds)


def _status_fail(seat: Seat, end: StintEnd) -> None:
    """Leave the failure in the status file, beside the last numbers."""
    if end.error is None:
        return
    peer_id = seat.home.swarm_key().peer_id
    status = StatusFile(seat.joiner.folder, role=seat.joiner.role, peer_id=peer_id)
    kept = status_read(status.path)
    if kept is not None:
        status.update(epoch=kept.epoch, samples_total=kept.samples_total, loss=kept.loss)
    status.update(phase="waiting")
    status.fail(end.error)
    status.stop()
