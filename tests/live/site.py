"""A site in a folder of its own, served by a real uvicorn: for goodbyes, load and slow clients."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import redis

ROOT = Path(__file__).parents[2]
SLUG = "demo"
START_SECONDS = 30.0
SEED = f"""
from web.accounts.services import user_register
from web.runs.services import run_config_publish, run_create, run_transition
alice = user_register(username="alice", password="correct horse", is_staff=True)
run = run_create(alice, slug="{SLUG}", title="Demo", summary="")
run_config_publish(alice, run, {{"task": {{"name": "tiny", "params": {{}}}}}})
run_transition(alice, run, "open")
"""


class Site:
    """Made in ``data``; ``serve`` starts an ASGI application of it."""

    def __init__(self, data: Path, redis_url: str, port: int, **environment: str) -> None:
        self.data, self.port = data, port
        self.environment = {
            **os.environ,
            "BEEYARD_DATA": str(data),
            "BEEYARD_SECRET_KEY": "only-for-tests-" + "x" * 40,
            "BEEYARD_PORT": str(port),
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "web.project.settings",
            **environment,
        }
        self.log = data / "web.log"
        self.process: subprocess.Popen[bytes] | None = None

    def seed(self) -> None:
        """Make the database and an open run."""
        self._begin()
        self._manage("shell", "-v", "0", "-c", SEED)

    def _begin(self) -> None:
        """Make the database; what another site said to this Redis is not this one's."""
        with redis.Redis.from_url(self.environment["REDIS_URL"]) as store:
            store.flushall()
        self._manage("migrate", "--verbosity", "0")

    def live_seq(self) -> int:
        """Return the number of the run's last message."""
        with closing(sqlite3.connect(self.data / "db.sqlite3")) as database:
            row = database.execute("SELECT live_seq FROM runs_run WHERE slug = ?", (SLUG,))
            return int(row.fetchone()[0])

    def _manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def serve(
        self, application: str = "web.project.asgi:application", *, processes: int = 1
    ) -> int:
        """Start uvicorn as ``make run`` does and return its process id once it listens."""
        kind = os.environ.get("BENCH_WS", "web.project.lingering:CutProtocol")
        flags = ("--ws", kind, "--ws-per-message-deflate", "false", "--no-access-log")
        address = (
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--log-level",
            "warning",
            "--lifespan",
            "off",
            *(("--workers", str(processes)) if processes > 1 else ()),
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", application, *address, *flags],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self.process.pid
            except OSError:
                assert self.process.poll() is None, self.log.read_text()[-3000:]
                assert time.monotonic() < ends, "uvicorn does not listen"
                time.sleep(0.1)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 15.0) -> int | None:
        """End the server; return its exit code, None when it had to be killed."""
        if self.process is None:
            return None
        self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.process = None
