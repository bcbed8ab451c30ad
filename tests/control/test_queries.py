"""Each page of the desk takes the same few queries, however much there is to show."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.control.scenes import harmed_run
from tests.factories import node_make, user_make
from tests.factories_alerts import alert_make
from tests.factories_runs import config_publish, draft_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.alerts.kinds import AlertKind
from web.alerts.models import Webhook
from web.contributions.models import Suspicion
from web.control.urls import urlpatterns
from web.monitoring.models import Peer
from web.runs.models import Checkpoint, Run, RunMember
from web.runs.services import draft_save
from web.workers.models import ManagedWorker

MOST = 35
"""The page of a run, with its ten parts, is the dearest."""
ACTS = {"draft_discard", "draft_file", "draft_import", "workers_launch", "alert_mail",
        "webhook_add", "site_alert_mail", "role_give"}  # fmt: skip
"""Addresses that only take posts."""
FILES = {"draft_export", "audit_export", "run_audit_export"}


def paths(slug: str) -> dict[str, str]:
    """Return the addresses of pages about the site or one run, by name."""
    found = {str(p.name): f"/control/{p.pattern}" for p in urlpatterns}
    plain = {name: path.replace("<slug:slug>", slug) for name, path in found.items()}
    return {n: p for n, p in plain.items() if "<" not in p and n not in ACTS | FILES}


def scene(alice: User, slug: str, size: int) -> None:
    now = timezone.now()
    users = [user_make(f"{slug}{number}") for number in range(size)]
    run = harmed_run(alice, users, slug).run
    peers = {p.device.user_id: p for p in Peer.objects.filter(run=run).select_related("device")}
    for number, user in enumerate(users):
        snapshot_take(swarm_make(run_make(alice, f"{slug}-{number}"), 1, users=[user]))
        config_publish(run, swarm={"target_batch_size": 100 + number, "min_peers": 1})
        node = node_make(f"{slug}-node{number}")
        ManagedWorker.objects.create(
            run=run, kind="trainer", name=f"trainer-{number}", node=node.name
        )
        RunMember.objects.update_or_create(run=run, user=user, defaults={"part": "moderator"})
        device = peers[user.pk].device
        Suspicion.objects.create(run=run, device=device, kind="quarantine", at=now)
        Webhook.objects.create(
            run=run, url=f"https://hooks{number}.example/", secret="x", created_at=now
        )
        _state_make(run, 10 + number)
    for kind in list(AlertKind)[:size]:
        alert_make(run, kind)
    draft_save(alice, run, draft_make(), revision=0)


def _state_make(run: Run, epoch: int) -> None:
    Checkpoint.objects.create(
        run=run, lineage=1, epoch=epoch, config_version=1, files=[],
        manifest=f"manifest {epoch}", saved_at=timezone.now(),
    )  # fmt: skip


def measure(client: Client, slug: str) -> dict[str, int]:
    found = {}
    for name, path in paths(slug).items():
        client.get(path)  # what is kept in the process is kept by then
        with CaptureQueriesContext(connection) as context:
            answer = client.get(path)
        assert answer.status_code == 200, (name, path, answer.status_code)
        found[name] = len(context)
    return found


@pytest.mark.django_db
def test_a_page_of_the_desk_takes_as_few_queries_for_much_as_for_little(
    client: Client, alice: User
) -> None:
    alice.is_staff = alice.is_superuser = True
    alice.save()
    client.force_login(alice)
    scene(alice, "few", 2)
    few = measure(client, "few")
    scene(alice, "many", 6)
    many = measure(client, "many")
    assert {name: (few[name], n) for name, n in many.items() if few[name] != n} == {}
    assert {name: n for name, n in many.items() if n > MOST} == {}
    assert len(many) >= 25, "no page is left out"
