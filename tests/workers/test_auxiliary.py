"""The process of a managed auxiliary peer: a trainer's in all but its role."""

import json

from django.utils import timezone

from tests.factories_runs import run_make
from tests.workers.conftest import Program
from web.accounts.credentials import token_hash
from web.accounts.models import ApiToken, User
from web.monitoring.models import RunSwarm
from web.workers.decide import Action
from web.workers.launcher import worker_folder
from web.workers.models import ManagedWorker
from web.workers.processes import is_alive, wait_until
from web.workers.services import (
    managed_worker_create,
    managed_worker_reconcile,
    workers_stop_all,
)


def test_it_is_launched_with_its_role_and_a_devices_token_and_stopped_with_the_site(
    alice: User, program: Program
) -> None:
    run = run_make(alice)
    RunSwarm.objects.update_or_create(run=run, defaults={"received_at": timezone.now()})
    managed_worker_create(alice, run, "auxiliary", "auxiliary-1")
    worker = ManagedWorker.objects.select_related("run").get()
    assert managed_worker_reconcile(worker) is Action.START
    folder = worker_folder(worker)
    heard = folder / "home" / "heard.json"
    assert wait_until(heard.exists, 20)
    words = json.loads(heard.read_text())["argv"]
    assert words[1:4] == ["-m", "training", "join"]
    assert words[words.index("--role") + 1] == "auxiliary"
    token = ApiToken.objects.get(hash=token_hash((folder / "token").read_text()))
    assert token.scope == ApiToken.Scope.DEVICE
    worker.refresh_from_db()
    assert is_alive(worker.pid, worker.process_started_at)
    workers_stop_all()
    assert not is_alive(worker.pid, worker.process_started_at)
