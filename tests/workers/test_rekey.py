"""A managed worker's keys are refused, deleted, and made anew."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.factories import device_make
from tests.workers.test_launch import look, look_until
from training.protocol.keys import key_dump
from training.protocol.states import WorkerState
from web.accounts.services import service_user_get
from web.core.models import AuditEntry
from web.workers.launcher import worker_folder
from web.workers.models import ManagedWorker
from web.workers.processes import is_alive, wait_until
from web.workers.selectors import service_name


def test_a_coordinators_keys_are_given_up_and_its_process_begins_anew(
    coordinator: ManagedWorker, django_capture_on_commit_callbacks: object
) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid, started_at = coordinator.pid, coordinator.process_started_at
    device, key = device_make(service_user_get(service_name(coordinator.run)), "host")
    home = worker_folder(coordinator) / "home"
    (home / "device.jwk").write_text(key_dump(key))
    (home / "swarm.key").write_text("secret")
    out = StringIO()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        call_command("worker_new_keys", "demo", "coordinator", stdout=out)
    assert device.public_id in out.getvalue()
    device.refresh_from_db()
    assert device.is_revoked
    assert device.rekey_at is not None
    assert not (home / "device.jwk").exists()
    assert not (home / "swarm.key").exists()
    assert wait_until(lambda: not is_alive(pid, started_at), 10)
    assert AuditEntry.objects.filter(code="worker.keys.replaced").exists()
    assert key_dump(key) not in out.getvalue()


def test_an_unknown_worker_is_named(coordinator: ManagedWorker) -> None:
    with pytest.raises(CommandError, match="no worker nobody"):
        call_command("worker_new_keys", "demo", "nobody")
