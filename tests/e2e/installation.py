"""A whole site as a user starts it: ``manage.py up`` in a folder of its own."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

ROOT = Path(__file__).parents[2]
RUN = "python-docs"
T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, check: Callable[[], T | None], seconds: float) -> T:
    """Return the first truthy answer of ``check``; fail with what it last said."""
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        try:
            last = check()
        except (httpx.HTTPError, sqlite3.OperationalError, KeyError) as error:
            last = None
            problem: object = error
        else:
            problem = last
        if last:
            return last
        time.sleep(0.25)
    raise AssertionError(f"{what} did not happen within {seconds:.0f} s; last seen: {problem!r}")


@dataclass
class Installation:
    data: Path
    port: int
    process: "subprocess.Popen[str] | None" = None
    started_at: float = 0.0
    extra_env: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def run_url(self) -> str:
        return f"{self.url}/runs/{RUN}/"

    def start(self) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BEEYARD_", "DJANGO_"))}
        self.started_at = time.monotonic()
        command = [sys.executable, "manage.py", "up", "--port", str(self.port)]
        with (self.data.parent / "up.log").open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--data", str(self.data)],
                cwd=ROOT,
                env=clean | self.extra_env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )

    def stop(self, seconds: float = 90) -> int:
        """Press Ctrl-C and wait for the end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def log(self) -> str:
        return (self.data.parent / "up.log").read_text()

    def get(self, path: str, **options: Any) -> Any:
        answer = httpx.get(f"{self.url}{path}", timeout=10, **options)
        answer.raise_for_status()
        return answer.json()

    def state(self) -> dict[str, Any]:
        return dict(self.get(f"/api/v1/runs/{RUN}/state/"))

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database beside the site, as an auditor would."""
        with sqlite3.connect(f"file:{self.data / 'db.sqlite3'}?mode=ro", uri=True) as database:
            return database.execute(query, values).fetchall()

    def ledger(self) -> dict[tuple[int, int], int]:
        """Return samples by (epoch, device) as first entered; a doubled row fails here."""
        found = self.rows(
            "select epoch, device_id, samples from contributions_ledgerentry"
            " where settles_id is null and corrects_id is null"
        )
        keys = [(epoch, device) for epoch, device, _ in found]
        assert len(keys) == len(set(keys)), "a ledger row stands twice"
        return {(epoch, device): samples for epoch, device, samples in found}

    def organiser(self) -> dict[str, str]:
        return dict(json.loads((self.data / "organiser.json").read_text()))

    def processes(self, name: str = "") -> list[psutil.Process]:
        """Return processes of this installation, found by their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
            except (psutil.Error, OSError):
                continue
            if environment.get("BEEYARD_DATA") == str(self.data) and environment.get(
                "BEEYARD_PROCESS", ""
            ).startswith(name):
                found.append(process)
        return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def worker_pid(self, name: str) -> int | None:
        found = self.rows("select pid from workers_managedworker where name = ?", name)
        return int(found[0][0]) if found and found[0][0] else None


class Person:
    """Somebody with a browser's session, made with plain requests."""

    def __init__(self, site: Installation, username: str, password: str) -> None:
        self.username, self.password = username, password
        self.http = httpx.Client(base_url=site.url, follow_redirects=True, timeout=20)

    def __enter__(self) -> "Person":
        return self

    def __exit__(self, *problem: object) -> None:
        self.http.close()

    def post(self, path: str, page: str | None = None, **data: str) -> httpx.Response:
        form = self.http.get(page or path)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        assert token, f"{page or path} has no form: {form.status_code}"
        headers = {"Referer": str(form.url)}
        return self.http.post(path, data=data | {"csrfmiddlewaretoken": token[1]}, headers=headers)

    def sign_up(self) -> None:
        answer = self.post(
            "/accounts/signup/",
            email=f"{self.username}@example.org",
            username=self.username,
            password1=self.password,
        )
        assert answer.status_code == 200, answer.text
        assert self.username in self.http.get("/").text

    def log_in(self) -> None:
        answer = self.post("/accounts/login/", login=self.username, password=self.password)
        assert answer.status_code == 200
        assert self.username in self.http.get("/").text
