"""``make run``: start everything, tell how it goes, stop everything in order."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from training.protocol.names import ENV_DATA, ENV_PROCESS
from web.project.stack.preflight import PreflightError, folder_locked, preflight
from web.project.stack.programs import programs
from web.project.stack.progress import Progress, site_answers
from web.project.stack.redis_server import EmbeddedRedis, embedded_redis
from web.project.stack.supervise import Supervisor
from web.project.stack.wheel import wheel_build
from web.workers.demo import organiser_ensure
from web.workers.processes import marked_processes, processes_kill, wait_until
from web.workers.services import workers_stop_all

LOOK_SECONDS = 1.0
_SWEEP_SECONDS = 5.0


class Interrupted(Exception):
    """The user pressed Ctrl-C, or the system asked to stop."""


def up(tell: Callable[[str], None]) -> int:
    """Run the site until it is interrupted; returns the exit code."""
    data = Path(settings.DATA_DIR)
    logging.getLogger().setLevel(logging.WARNING)  # this terminal shows progress, not a log
    try:
        tell("Pre-flight. Nothing is changed yet.")
        preflight(data=data, bind=settings.BIND, port=settings.PORT)
        with folder_locked(data):
            return _run(data, tell)
    except (PreflightError, RuntimeError) as error:
        tell(f"Cannot start: {error}")
        return 1
    except Interrupted:
        return 0


def _run(data: Path, tell: Callable[[str], None]) -> int:
    _clean_up_after_a_crash(tell)
    for name in ("run", "logs", "keys", "dist"):
        (data / name).mkdir(exist_ok=True, mode=0o700)
    _signals_take()
    redis = None if os.environ.get("REDIS_URL") else embedded_redis(data / "run")
    supervisor = Supervisor(
        run=data / "run", logs=Path(settings.LOGS_DIR), directory=Path(settings.BASE_DIR)
    )
    code = 0
    try:
        _prepare(tell)
        environment = _environment(redis)
        supervisor.start(programs(redis), environment)
        _come_up(environment, tell)
        _watch(supervisor, tell)
        tell("The supervisor has ended: see the logs in the data folder.")
        code = 1
    except Interrupted:
        tell("Stopping. The coordinator saves a last checkpoint; Ctrl-C again stops at once.")
    finally:
        remaining = _stop(supervisor, tell)
    return code or (1 if remaining else 0)


def _prepare(tell: Callable[[str], None]) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    organiser_ensure()
    connections.close_all()


def _come_up(environment: dict[str, str], tell: Callable[[str], None]) -> None:
    if not site_answers():
        raise RuntimeError(f"the site does not answer; see {settings.LOGS_DIR}/web.log")
    organiser = organiser_ensure()
    tell(f"The site is at {settings.PUBLIC_URL}")
    tell(
        f"Organiser: {organiser['username']}  password: {organiser['password']}  "
        f"(kept in {settings.DATA_DIR}/organiser.json)"
    )
    if settings.DEMO:
        _seed(environment, tell)
    threading.Thread(target=_wheel, args=(tell,), name="wheel", daemon=True).start()


def _seed(environment: dict[str, str], tell: Callable[[str], None]) -> None:
    """Make the demo in a process of its own: it reaches Redis and Celery as the site does."""
    command = [sys.executable, "manage.py", "seed_demo"]
    with subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        env=environment | {ENV_PROCESS: "seed"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout or ():
            tell(line.rstrip())
        problem = process.stderr.read() if process.stderr else ""
    if process.returncode:
        raise RuntimeError(f"the demo run could not be made: {problem.strip()[-600:]}")


def _wheel(tell: Callable[[str], None]) -> None:
    time.sleep(45)  # the first epoch has the processors first
    if not wheel_build():
        tell("The volunteers' package could not be built: see dist/build.log in the data folder.")


def _watch(supervisor: Supervisor, tell: Callable[[str], None]) -> None:
    progress = Progress(tell)
    while supervisor.is_running():
        progress.look()
        connections.close_all()
        time.sleep(LOOK_SECONDS)


def _stop(supervisor: Supervisor, tell: Callable[[str], None]) -> int:
    """Stop in order; a second interruption skips to the kill. Returns what could not be ended."""
    try:
        supervisor.program_stop("beat")
        supervisor.program_stop("celery")
        workers_stop_all()
        supervisor.stop()
    except Interrupted:
        tell("Stopping at once.")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    remaining = _sweep()
    tell(f"{remaining} processes could not be ended." if remaining else "Stopped.")
    return remaining


def _sweep() -> int:
    """End what is left of this installation; returns what is left after that."""
    if marked_processes():
        wait_until(lambda: not marked_processes(), 1.0)
        processes_kill(marked_processes("supervisord"))  # first: it would restart the others
        processes_kill(marked_processes())
        wait_until(lambda: not marked_processes(), _SWEEP_SECONDS)
    return len(marked_processes())


def _clean_up_after_a_crash(tell: Callable[[str], None]) -> None:
    left = len(marked_processes())
    if left:
        tell(f"Ending {left} processes that an earlier crash left behind.")
        if _sweep():
            raise PreflightError(
                "Processes of an earlier start cannot be ended: reboot, or ask its owner."
            )


def _environment(redis: EmbeddedRedis | None) -> dict[str, str]:
    environment = dict(os.environ)
    environment[ENV_DATA] = str(settings.DATA_DIR)
    environment["BEEYARD_BIND"] = settings.BIND
    environment["BEEYARD_PORT"] = str(settings.PORT)
    environment["DJANGO_SETTINGS_MODULE"] = "web.project.settings"
    environment["OMP_NUM_THREADS"] = "1"
    if redis:
        environment["REDIS_URL"] = redis.url
    return environment


def _signals_take() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if not sys.stdin.isatty() else interrupt)
