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
from web.project.env import env_text
from web.project.stack.preflight import PreflightError, folder_locked, machine_check, port_check
from web.project.stack.programs import programs
from web.project.stack.progress import Progress, site_answers
from web.project.stack.redis_server import EmbeddedRedis, embedded_redis
from web.project.stack.stop import Interrupted, crash_clean_up, stop_in_order
from web.project.stack.supervise import Supervisor
from web.project.stack.terminal import Terminal
from web.project.stack.wheel import wheel_build
from web.workers.demo import organiser_ensure

LOOK_SECONDS = 1.0
_WHEEL_AFTER_SECONDS = 45.0
"""The first epoch has the processors first."""
_FOLDERS = ("run", "logs", "keys", "dist")


def up(terminal: Terminal) -> int:
    """Run the site until it is interrupted; returns the exit code."""
    data = Path(settings.DATA_DIR)
    logging.getLogger().setLevel(logging.WARNING)  # this terminal shows progress, not a log
    supervisor = Supervisor(
        run=data / "run", logs=Path(settings.LOGS_DIR), directory=Path(settings.BASE_DIR)
    )
    _signals_take()
    try:
        terminal.tell("Pre-flight. Nothing is changed yet.")
        machine_check(data)
        with folder_locked(data):
            crash_clean_up(supervisor, terminal)
            port_check(settings.BIND, settings.PORT)
            return _run(data, supervisor, terminal)
    except (PreflightError, RuntimeError) as error:
        terminal.tell(f"Cannot start: {error}")
        return 1
    except Interrupted:
        return 0


def _run(data: Path, supervisor: Supervisor, terminal: Terminal) -> int:
    for name in _FOLDERS:
        (data / name).mkdir(exist_ok=True, mode=0o700)
    redis = None if env_text("REDIS_URL") else embedded_redis(data / "run")
    code = 0
    try:
        _prepare()
        environment = _environment(redis)
        supervisor.start(programs(redis), environment)
        if settings.DEMO:
            # Beside the site's start: training a tokenizer takes longer than that.
            _thread(_seed, environment, terminal)
        _come_up(terminal)
        _thread(_wheel, terminal)
        _watch(supervisor, terminal)
        terminal.tell("The supervisor has ended: see the logs in the data folder.")
        code = 1
    except Interrupted:
        terminal.tell("Stopping; the coordinator saves a last checkpoint. Ctrl-C again: at once.")
    finally:
        remaining = stop_in_order(supervisor, terminal)
    return code or (1 if remaining else 0)


def _prepare() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    organiser_ensure()
    connections.close_all()


def _come_up(terminal: Terminal) -> None:
    if not site_answers():
        raise RuntimeError(f"the site does not answer; see {settings.LOGS_DIR}/web.log")
    organiser = organiser_ensure()
    terminal.tell(f"The site is at {settings.PUBLIC_URL}")
    kept = f"{settings.DATA_DIR}/organiser.json"
    # A person at a terminal wants to read it; a pipe may end in a log, where it must not be.
    shown = f"{organiser['password']}  (kept in {kept})" if sys.stdout.isatty() else f"see {kept}"
    terminal.tell(f"Organiser: {organiser['username']}  password: {shown}")
    if settings.BIND in ("", "0.0.0.0", "::") and not env_text("BEEYARD_PUBLIC_URL"):  # noqa: S104
        terminal.tell("For other machines, set BEEYARD_PUBLIC_URL to the address they use.")


def _seed(environment: dict[str, str], terminal: Terminal) -> None:
    """Make the demo in a process of its own: it reaches Redis and Celery as the site does."""
    with subprocess.Popen(
        [sys.executable, "manage.py", "seed_demo"],
        cwd=settings.BASE_DIR,
        env=environment | {ENV_PROCESS: "seed"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        for line in process.stdout or ():
            terminal.tell(line.rstrip())
        problem = process.stderr.read().strip() if process.stderr else ""
    if process.returncode > 0:
        last = problem.splitlines()[-1] if problem else "no reason given"
        terminal.tell(f"The demo run could not be made: {last}")


def _wheel(terminal: Terminal) -> None:
    time.sleep(_WHEEL_AFTER_SECONDS)
    if not wheel_build():
        terminal.tell("The volunteers' package could not be built: see dist/build.log.")


def _watch(supervisor: Supervisor, terminal: Terminal) -> None:
    progress = Progress(terminal)
    while supervisor.is_running():
        progress.look()
        connections.close_all()
        time.sleep(LOOK_SECONDS)


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


def _thread(target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, name=target.__name__, daemon=True).start()


def _signals_take() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if not sys.stdin.isatty() else interrupt)
