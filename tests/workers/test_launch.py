"""Real subprocesses: what they are given, and how they end with all they started."""

import json
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.workers.conftest import BROKEN, STUBBORN, Program
from training.protocol.states import WorkerState
from web.accounts.credentials import token_hash
from web.accounts.models import ApiToken, User
from web.workers.decide import MAX_RESTARTS, Action
from web.workers.launcher import process_mark, worker_folder
from web.workers.models import ManagedWorker
from web.workers.processes import (
    is_alive,
    marked_processes,
    process_started_at,
    wait_until,
)
from web.workers.services import (
    managed_worker_create,
    managed_worker_reconcile,
    managed_worker_start,
    managed_worker_stop,
    workers_stop_all,
)

SECRETS = ("BEEYARD_SECRET_KEY", "DATABASE_URL", "REDIS_URL", "BEEYARD_TOKEN", "EMAIL_URL")


def look(worker: ManagedWorker) -> Action:
    """Look after the worker as the celery task does, with a row that was just read."""
    action = managed_worker_reconcile(ManagedWorker.objects.select_related("run").get(pk=worker.pk))
    worker.refresh_from_db()
    return action


def look_until(worker: ManagedWorker, state: WorkerState, seconds: float = 20) -> None:
    def check() -> bool:
        look(worker)
        return worker.state == state

    assert wait_until(check, seconds), f"{worker.state}: {worker.last_error}"


def heard(worker: ManagedWorker) -> dict[str, Any]:
    path = worker_folder(worker) / "home" / "heard.json"
    assert wait_until(path.exists, 20)
    return dict(json.loads(path.read_text()))


def test_a_wanted_coordinator_is_launched_and_found_running(coordinator: ManagedWorker) -> None:
    assert look(coordinator) is Action.START
    assert coordinator.state == WorkerState.STARTING
    assert coordinator.pid is not None
    assert is_alive(coordinator.pid, coordinator.process_started_at)
    assert os.getsid(coordinator.pid) == coordinator.pid, "it has a session of its own"
    look_until(coordinator, WorkerState.RUNNING)
    arguments = heard(coordinator)["argv"]
    assert arguments[1:4] == ["-m", "training", "coordinator"]
    assert arguments[4].endswith("/runs/demo/")
    assert arguments[arguments.index("--port") + 1] == str(coordinator.port)
    assert coordinator.port


def test_no_secret_is_in_its_arguments_or_environment(
    coordinator: ManagedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, f"secret-{name}")
    look(coordinator)
    told = heard(coordinator)
    folder = worker_folder(coordinator)
    token = (folder / "token").read_text()
    assert ApiToken.objects.get(hash=token_hash(token)).scope == "coordinator"
    assert not set(SECRETS) & set(told["env"])
    assert "secret-" not in json.dumps(told)
    assert token not in json.dumps(told)
    assert told["env"]["BEEYARD_PROCESS"] == "demo/coordinator"
    assert told["env"]["OMP_NUM_THREADS"] == "1"
    assert Path(told["cwd"]) == folder
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_two_looks_at_the_same_time_launch_one_process(coordinator: ManagedWorker) -> None:
    rows = [ManagedWorker.objects.select_related("run").get(pk=coordinator.pk) for _ in range(2)]
    for row in rows:  # both were read before either acted
        managed_worker_reconcile(row)
    assert len(marked_processes(process_mark(coordinator))) == 1


def test_a_launch_that_was_not_written_down_is_adopted(coordinator: ManagedWorker) -> None:
    look(coordinator)
    pid = coordinator.pid
    # As if the launching celery process had been killed right after it started the process.
    ManagedWorker.objects.filter(pk=coordinator.pk).update(
        state=WorkerState.BACKING_OFF, pid=None, process_started_at=None
    )
    heard(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    assert coordinator.pid == pid
    assert len(marked_processes(process_mark(coordinator))) == 1


def test_one_that_is_not_wanted_is_asked_once_and_leaves(
    coordinator: ManagedWorker, alice: User
) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid, started_at = coordinator.pid, coordinator.process_started_at
    managed_worker_stop(alice, coordinator)
    assert look(coordinator) is Action.STOP
    assert wait_until(lambda: not is_alive(pid, started_at), 10)
    assert look(coordinator) is Action.NOTE_STOPPED
    assert coordinator.state == WorkerState.STOPPED
    assert coordinator.pid is None
    assert look(coordinator) is Action.NOTHING


def test_one_that_does_not_leave_is_killed_with_its_children(
    coordinator: ManagedWorker, alice: User, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(STUBBORN)
    monkeypatch.setattr("web.workers.selectors.COORDINATOR_SECONDS", 1.0)
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid = coordinator.pid
    child = int((worker_folder(coordinator) / "home" / "child").read_text())
    assert os.getsid(child) != os.getsid(pid or 0), "not even the session holds them together"
    managed_worker_stop(alice, coordinator)
    assert look(coordinator) is Action.STOP
    assert look(coordinator) is Action.NOTHING
    assert is_alive(pid, process_started_at(pid or 0)), "it stands a polite request"
    look_until(coordinator, WorkerState.STOPPED, 10)
    assert not marked_processes(process_mark(coordinator))
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


def test_a_pid_that_was_given_away_again_is_left_alone(coordinator: ManagedWorker) -> None:
    stranger = psutil.Process()  # this very test
    ManagedWorker.objects.filter(pk=coordinator.pk).update(
        state=WorkerState.TRAINING,
        pid=stranger.pid,
        process_started_at=stranger.create_time() - 100,
    )
    assert look(coordinator) is Action.BACK_OFF
    assert coordinator.state == WorkerState.BACKING_OFF
    assert stranger.is_running()


def test_one_that_breaks_again_and_again_is_given_up_with_its_last_words(
    coordinator: ManagedWorker, alice: User, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(BROKEN)
    monkeypatch.setattr("web.workers.reconcile.back_off_seconds", lambda number: 0.0)
    look_until(coordinator, WorkerState.FAILED, 60)
    assert coordinator.num_restarts == MAX_RESTARTS
    assert "the reason why it broke" in coordinator.last_error
    assert look(coordinator) is Action.NOTHING
    managed_worker_start(alice, coordinator)
    coordinator.refresh_from_db()
    assert coordinator.num_restarts == 0
    assert coordinator.state != WorkerState.FAILED


def test_a_trainer_waits_for_its_coordinator(coordinator: ManagedWorker, alice: User) -> None:
    trainer = managed_worker_create(alice, coordinator.run, "trainer", "trainer-1")
    assert look(trainer) is Action.NOTHING
    assert trainer.state == WorkerState.REQUESTED


def test_a_paused_site_starts_nothing_and_a_finished_run_stops_its_processes(
    coordinator: ManagedWorker,
) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    coordinator.run.state = "finished"
    coordinator.run.save()
    assert look(coordinator) is Action.STOP


def test_the_stop_of_the_site_ends_all_and_keeps_what_is_wanted(
    coordinator: ManagedWorker, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(STUBBORN)
    monkeypatch.setattr("web.workers.selectors.COORDINATOR_SECONDS", 0.5)
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    began = time.monotonic()
    workers_stop_all()
    assert time.monotonic() - began < 8
    assert not marked_processes()
    coordinator.refresh_from_db()
    assert coordinator.state == WorkerState.STOPPED
    assert coordinator.desired == "running"
    assert coordinator.pid is None
