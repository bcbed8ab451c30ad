"""Everything stops in order, and nothing remains: neither after Ctrl-C nor after a crash."""

import signal
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connections

from web.project.stack.preflight import PreflightError
from web.project.stack.supervise import Supervisor
from web.project.stack.terminal import Terminal
from web.workers.processes import marked_processes, processes_kill, wait_until
from web.workers.services import workers_stop_all

_SWEEP_SECONDS = 5.0


class Interrupted(BaseException):
    """The user pressed Ctrl-C, or the system asked to stop.

    No ordinary exception: code that survives errors must not survive this.
    """


def stop_in_order(supervisor: Supervisor, terminal: Terminal) -> int:
    """Stop everything; a second interruption skips to the kill.

    First what would start managed workers again, then these, while the site is still there to
    take the coordinator's last checkpoint and report, then the site and its Redis.

    Returns:
        How many processes could not be ended.
    """
    try:
        connections.close_all()  # the interruption may have hit a query
        supervisor.program_stop("beat")
        supervisor.program_stop("celery")
        workers_stop_all()
        supervisor.stop()
    except Interrupted:
        terminal.tell("Stopping at once.")
    except DatabaseError as error:
        terminal.tell(f"Managed workers are ended without a good-bye: {error}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    remaining = _sweep()
    terminal.tell(f"{remaining} processes could not be ended." if remaining else "Stopped.")
    return remaining


def crash_clean_up(supervisor: Supervisor, terminal: Terminal) -> None:
    """End what an earlier start left behind when it was killed: it may be a whole running site.

    Raises:
        PreflightError: something of it cannot be ended.
    """
    left = len(marked_processes())
    if not left:
        return
    terminal.tell(f"Ending {left} processes that an earlier start left behind.")
    supervisor.program_stop("beat")
    supervisor.program_stop("celery")
    processes_kill([*marked_processes("beat"), *marked_processes("celery")])
    if Path(settings.DATA_DIR, "run").exists():
        _workers_stop()
    supervisor.shut_down()
    wait_until(lambda: not marked_processes("supervisord"), 2 * _SWEEP_SECONDS)
    if _sweep():
        raise PreflightError("Processes of an earlier start cannot be ended: they are not yours.")


def _workers_stop() -> None:
    try:
        workers_stop_all()
    except DatabaseError:  # of another version, or gone: the sweep ends them
        return
    finally:
        connections.close_all()


def _sweep() -> int:
    """End what is left of this installation; returns what is left after that."""
    if marked_processes():
        wait_until(lambda: not marked_processes(), 1.0)
        processes_kill(marked_processes("supervisord"))  # first: it would restart the others
        processes_kill(marked_processes())
        wait_until(lambda: not marked_processes(), _SWEEP_SECONDS)
    return len(marked_processes())
