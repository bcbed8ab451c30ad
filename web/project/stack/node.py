"""``manage.py node``: a celery worker that consumes one node's queue, and an orderly end."""

import logging
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone
from redis.exceptions import RedisError

from training.protocol.names import ENV_DATA, ENV_PROCESS
from web.project.env import env_text
from web.project.stack.preflight import PreflightError, folder_locked, machine_check
from web.project.stack.programs import celery_command
from web.project.stack.stop import Interrupted
from web.project.stack.terminal import Terminal
from web.workers.launcher import site_url
from web.workers.nodes import NodeTaken, node_beat, node_leave, node_queue
from web.workers.processes import marked_processes, processes_kill, wait_until
from web.workers.services import workers_stop_all
from web.workers.site_database import database_ask

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_CELERY_SECONDS = 20.0
_AGAIN_SECONDS = 3.0


def database_find() -> bool:
    """Put the site's DATABASE_URL into the environment, by what the site says in Redis.

    Return whether it was put there: False when it is there already, or no Redis is named.

    Raises:
        PreflightError: with one sentence.
    """
    if env_text("DATABASE_URL") or not env_text("REDIS_URL"):
        return False
    try:
        found = database_ask()
    except RedisError as error:
        raise PreflightError(f"REDIS_URL cannot be used ({error}).") from error
    if found is None:
        raise PreflightError(
            "the site has not said in Redis where its database is: start it first, at this very "
            "version, or set DATABASE_URL."
        )
    path = found.removeprefix("sqlite:///")
    if path != found and not Path(path).exists():
        raise PreflightError(
            "the site keeps its data in a file of its own machine (SQLite): nodes on other "
            "machines need PostgreSQL; see docs/howto/add-a-node.md."
        )
    os.environ["DATABASE_URL"] = found
    return True


def node_run(terminal: Terminal) -> int:
    """Run until interrupted; returns the exit code."""
    logging.getLogger().setLevel(logging.WARNING)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    data = Path(settings.DATA_DIR)
    try:
        _settings_check()
        machine_check(data)
        with folder_locked(data):
            _introduce(terminal)
            return _work(data, terminal)
    except (PreflightError, NodeTaken) as error:
        terminal.tell(f"Cannot start: {error}")
        return 1
    except Interrupted:
        return 0


def _settings_check() -> None:
    if settings.NODE == "site" or not _NAME.fullmatch(settings.NODE):
        raise PreflightError(
            "give this node a name with BEEYARD_NODE (small letters, digits, hyphens; not 'site')."
        )
    for name in ("REDIS_URL", "DATABASE_URL"):
        if not env_text(name):
            raise PreflightError(f"{name} is missing: set it to the one that the site uses.")


def _introduce(terminal: Terminal) -> None:
    """Say the first word in the database, which proves that it can be reached and fits.

    Raises:
        PreflightError, NodeTaken: with one sentence.
    """
    try:
        node_beat(timezone.now(), is_home=False)
        site = site_url()
    except DatabaseError as error:
        first = str(error).strip().splitlines()[0]
        raise PreflightError(
            f"the site's database cannot be used ({first}): check DATABASE_URL, and that the site "
            "runs this very version."
        ) from error
    finally:
        connections.close_all()
    terminal.tell(f"Node {settings.NODE} of {site}, queue {node_queue(settings.NODE)}.")


def _work(data: Path, terminal: Terminal) -> int:
    (data / "logs").mkdir(exist_ok=True, mode=0o700)
    celery: subprocess.Popen[bytes] | None = None
    try:
        while True:
            celery = _celery_start(data)
            terminal.tell("Ready. Ctrl-C stops this node's managed workers and ends it.")
            code = celery.wait()
            terminal.tell(f"celery ended with code {code}; see logs/celery.log. Starting it again.")
            time.sleep(_AGAIN_SECONDS)
    except Interrupted:
        terminal.tell("Stopping this node's managed workers.")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    remaining = _stop(celery)
    terminal.tell(f"{remaining} processes could not be ended." if remaining else "Stopped.")
    return 1 if remaining else 0


def _celery_start(data: Path) -> "subprocess.Popen[bytes]":
    marks = {ENV_DATA: str(data), ENV_PROCESS: "celery", "OMP_NUM_THREADS": "1"}
    with (data / "logs" / "celery.log").open("ab") as log:
        return subprocess.Popen(
            celery_command([node_queue(settings.NODE)]),
            cwd=settings.BASE_DIR,
            env=os.environ | marks | {"DJANGO_SETTINGS_MODULE": "web.project.settings"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _stop(celery: "subprocess.Popen[bytes] | None") -> int:
    """End celery, which would start them again, then the managed workers; returns what is left."""
    if celery is not None and celery.poll() is None:
        celery.terminate()
        wait_until(lambda: celery.poll() is not None, _CELERY_SECONDS)
    try:
        workers_stop_all()
        node_leave(timezone.now())
    except DatabaseError:
        pass  # out of reach: the site sees by itself that this node is away
    if marked_processes():
        processes_kill(marked_processes())
        wait_until(lambda: not marked_processes(), _AGAIN_SECONDS)
    return len(marked_processes())


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted
