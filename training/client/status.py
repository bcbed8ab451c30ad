"""The status file: what a running trainer or coordinator says of itself to its own machine.

``beeyard status`` reads it, and for managed workers it is the heartbeat file.
"""

import contextlib
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pydantic import ValidationError

from training.client.errors import ClientError
from training.client.files import json_read, json_write
from training.protocol.base import Instant, TolerantModel
from training.protocol.states import Role

PHASES = (
    *("starting", "joining", "syncing", "waiting"),
    *("training", "averaging", "paused", "leaving"),
)
WRITE_SECONDS = 2.0


class StatusError(TolerantModel):
    """The last failure, in the words that the person saw."""

    code: str
    detail: str
    remedy: str


class Status(TolerantModel):
    """Content of ``status.json``."""

    pid: int
    started_at: Instant
    role: Role
    phase: str = "starting"
    """One of :data:`PHASES`."""
    epoch: int = 0
    samples_total: int = 0
    samples_per_second: float = 0.0
    loss: float | None = None
    peer_id: str = ""
    updated_at: Instant
    error: StatusError | None = None


class StatusFile:
    """Keeps ``status.json`` of a run fresh, from a thread that never blocks training."""

    def __init__(self, folder: Path, *, role: Role, peer_id: str = "") -> None:
        self.path = folder / "status.json"
        now = datetime.now(UTC)
        self._status = Status(
            pid=os.getpid(), started_at=now, updated_at=now, role=role, peer_id=peer_id
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-file", daemon=True)

    @property
    def status(self) -> Status:
        return self._status

    def update(self, **changes: object) -> None:
        """Change fields; they reach the disk within two seconds."""
        with self._lock:
            self._status = self._status.model_copy(update=changes)

    def fail(self, error: ClientError | None) -> None:
        """Note the last failure, or that it is over."""
        told = error and StatusError(code=error.code, detail=error.detail, remedy=error.remedy)
        self.update(error=told)

    def start(self) -> None:
        """Write once now (a folder that cannot be written shows up here), then regularly."""
        self._write()
        self._thread.start()

    def stop(self) -> None:
        """Stop writing, with a last write."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(ClientError):
            self._write()

    def _run(self) -> None:
        while not self._stop.wait(WRITE_SECONDS):
            with contextlib.suppress(ClientError):  # a full disk must not end the training
                self._write()

    def _write(self) -> None:
        self.update(updated_at=datetime.now(UTC))
        json_write(self.path, self._status.model_dump(mode="json"))


def status_read(path: Path) -> Status | None:
    """Return a status file's content, None when it is missing or damaged."""
    try:
        data = json_read(path)
        return None if data is None else Status.model_validate(data)
    except (ClientError, ValidationError):
        return None


def status_is_alive(status: Status) -> bool:
    """Return whether the process that wrote the file still runs (pids are reused)."""
    try:
        process = psutil.Process(status.pid)
        born = process.create_time()
        return (
            process.status() != psutil.STATUS_ZOMBIE and born <= status.started_at.timestamp() + 2
        )
    except psutil.Error:
        return False
