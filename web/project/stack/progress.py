"""What ``up`` tells its user: each step while things come up, then a line per epoch."""

import time
from dataclasses import dataclass, field
from typing import Any

import httpx
from django.conf import settings
from django.db import DatabaseError
from django.db.models import QuerySet

from training.protocol.states import WorkerState
from web.monitoring.selectors import live_state
from web.project.stack.terminal import Terminal
from web.runs.models import Run
from web.workers.models import ManagedWorker
from web.workers.selectors import heartbeat_read

_WORDS = {
    "starting": "loading the model",
    "joining": "joining the swarm",
    "syncing": "downloading the state",
    "waiting": "waiting for peers",
    "training": "training",
    "averaging": "averaging",
    "paused": "paused",
    "leaving": "leaving",
}


@dataclass
class Progress:
    """Compares what is with what was last told, and tells the difference once."""

    terminal: Terminal
    _told: dict[str, str] = field(default_factory=dict)
    _epochs: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Look once; a database that is busy is looked at next time."""
        try:
            for worker in _workers_here():
                self._worker(worker)
            for run in Run.objects.all():
                self._run(run)
        except DatabaseError:
            return

    def _worker(self, worker: ManagedWorker) -> None:
        phase = _phase(worker)
        if worker.state in (WorkerState.BACKING_OFF, WorkerState.FAILED):
            event = worker.events.first()
            phase = f"{worker.state.replace('_', ' ')}: {event.text if event else ''}"
            phase += f" ({_last_words(worker)})" if worker.last_error else ""
        self._once(f"{worker.run.slug} {worker.name}", phase)

    def _run(self, run: Run) -> None:
        state = live_state(run)
        if state.get("as_of") is None:
            return
        epoch = int(state.get("epoch") or 0)
        self.terminal.status(_now(run.slug, epoch, state))
        if epoch == self._epochs.get(run.slug, 0):
            return
        self._epochs[run.slug] = epoch
        loss = state.get("loss")
        shown = f"loss {loss:.3f}" if loss is not None else "no loss yet"
        self.terminal.tell(
            f"{run.slug}: epoch {epoch} · {shown} · {state['samples_per_second']:.0f} samples/s · "
            f"{state['num_peers']} peers"
        )

    def _once(self, name: str, text: str) -> None:
        if text and self._told.get(name) != text and not self._is_flicker(name, text):
            self._told[name] = text
            self.terminal.tell(f"{name}: {text}")

    def _is_flicker(self, name: str, text: str) -> bool:
        """Training and averaging alternate for ever: the epoch lines tell that better."""
        steady = {"training", "averaging", "waiting for peers"}
        return text in steady and self._told.get(name) in steady


def _workers_here() -> "QuerySet[ManagedWorker]":
    here = ManagedWorker.objects.filter(node=settings.NODE)
    return here.select_related("run").order_by("kind", "id")


def _last_words(worker: ManagedWorker) -> str:
    """Return the last line that begins a sentence; what is indented belongs to one."""
    lines = [line for line in worker.last_error.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line[0].isspace()), "")[:200]


def _now(slug: str, epoch: int, state: dict[str, Any]) -> str:
    return (
        f"{slug}, epoch {epoch + 1}: {state['samples_accumulated']:,} of "
        f"{state['target_batch_size']:,} samples · {state['samples_per_second']:.0f} samples/s · "
        f"{state['num_peers']} peers"
    )


def _phase(worker: ManagedWorker) -> str:
    heartbeat = heartbeat_read(worker) if worker.pid else None
    if heartbeat is None:
        return "starting" if worker.state == WorkerState.STARTING else ""
    words = _WORDS.get(heartbeat.phase, "")
    if worker.kind == ManagedWorker.Kind.COORDINATOR and words:
        return "up" if words in ("training", "waiting for peers", "averaging") else words
    return words


def site_answers(seconds: float = 60.0) -> bool:
    """Wait until the site answers on its own address."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{settings.SITE_LOCAL_URL}/healthz", timeout=2).is_success:
                return True
        except httpx.HTTPError:
            pass
        time.sleep(0.3)
    return False
