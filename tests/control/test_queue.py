"""The queue: what waits, in which order, for whom."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import Model
from django.db.models.signals import post_init
from django.test import Client
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import Swarm, config_publish, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.alerts.models import Webhook
from web.contributions.quarantine import device_quarantine
from web.control.queue import queue_items
from web.core.models import AuditCheck
from web.monitoring.models import RunSwarm
from web.runs.models import Checkpoint, Run, RunMember
from web.workers.models import EvaluationJob, ManagedWorker

PAGE = "/control/queue/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    made = swarm_make(run_make(alice), 1, users=[bob])
    snapshot_take(made)
    return made


def titles(user: User) -> list[str]:
    return [item.title for item in queue_items(user, list(Run.objects.all()))]


def failed(run: Run, name: str, **fields: object) -> ManagedWorker:
    return ManagedWorker.objects.create(
        **{"run": run, "kind": "trainer", "name": name, "state": "failed",
           "last_error": "Traceback\nMemoryError: no memory\n", **fields}
    )  # fmt: skip


def test_an_empty_queue_says_what_will_come(desk: Client, swarm: Swarm) -> None:
    page = desk.get(PAGE).text
    assert "Nothing waits" in page
    assert 'class="badge"' not in page
    assert "requests appear here" in desk.get(f"{PAGE}?kind=approval").text


def test_urgent_things_come_first_then_the_newest(desk: Client, swarm: Swarm, alice: User) -> None:
    run = swarm.run
    failed(run, "trainer-1")
    failed(run, "trainer-2", desired="stopped")
    failed(run, "coordinator", kind="coordinator")
    device_quarantine(alice, run, swarm.volunteers[0].device, "odd")
    assert titles(alice) == [
        "coordinator gave up", "machine 0 of bob", "trainer-1 gave up",
    ]  # fmt: skip
    page = desk.get(PAGE).text
    assert '<span class="count">3<' in page
    assert "MemoryError: no memory" in page
    assert "Traceback" not in page
    narrowed = desk.get(f"{PAGE}?kind=suspicion").text
    assert "machine 0 of bob" in narrowed
    assert "gave up" not in narrowed
    assert "Nothing waits" in desk.get(f"{PAGE}?run=other").text


def test_a_silent_coordinator_and_a_missing_checkpoint_are_failures(
    swarm: Swarm, alice: User
) -> None:
    now = timezone.now()
    snapshot_take(swarm, now, epoch=25)
    assert titles(alice) == ["No checkpoint for long"]
    saved = Checkpoint.objects.create(
        run=swarm.run, lineage=1, epoch=10, config_version=1, files=[], manifest="", saved_at=now
    )
    assert titles(alice) == []
    Checkpoint.objects.filter(pk=saved.pk).update(epoch=4)
    assert titles(alice) == ["No checkpoint for long"]
    RunSwarm.objects.update(received_at=now - timedelta(minutes=5))
    assert "The coordinator is silent" in titles(alice)
    Run.objects.update(state="paused")
    assert titles(alice) == []


def test_a_failed_evaluation_and_a_disabled_webhook_are_failures_until_they_are_mended(
    swarm: Swarm, alice: User, desk: Client
) -> None:
    now, run = timezone.now(), swarm.run
    job = EvaluationJob.objects.create(
        run=run, lineage=1, epoch=4, config_version=1, state="failed", asked_at=now,
        finished_at=now, node="site", reason="The file is damaged.",
    )  # fmt: skip
    hook = Webhook.objects.create(
        run=run, url="https://hooks.example.org/T0/s3cret", secret="", created_at=now,
        disabled_at=now, disabled_reason="3 messages could not be delivered: Answered with 500.",
    )  # fmt: skip
    assert set(titles(alice)) == {
        "The evaluation of epoch 4 failed", "The webhook to hooks.example.org/… is disabled",
    }  # fmt: skip
    page = desk.get(PAGE).text
    for text in ("The file is damaged.", "Answered with 500.", "/alerts/settings/"):
        assert text in page
    assert "s3cret" not in page
    EvaluationJob.objects.create(
        run=run, lineage=1, epoch=5, config_version=1, state="done", asked_at=now, node="site",
        finished_at=now + timedelta(minutes=1),
    )  # fmt: skip
    Webhook.objects.filter(pk=hook.pk).update(disabled_at=None)
    assert titles(alice) == []
    EvaluationJob.objects.filter(pk=job.pk).update(finished_at=now + timedelta(hours=1))
    assert titles(alice) == ["The evaluation of epoch 4 failed"]
    EvaluationJob.objects.filter(pk=job.pk).update(state="waiting")
    assert titles(alice) == []


def test_the_queue_reads_the_newest_of_each_run_and_only_once_a_page(
    desk: Client, alice: User
) -> None:
    now = timezone.now()
    runs = [run_make(alice, f"run-{number}") for number in range(3)]
    for run in runs:
        snapshot_take(swarm_make(run, 1, users=[user_make(run.slug)]), now, epoch=50)
        for number in range(2, 6):
            config_publish(run, title=f"version {number}")
        for epoch in range(1, 9):
            Checkpoint.objects.create(
                run=run, lineage=1, epoch=epoch, config_version=1, files=[], manifest="",
                saved_at=now,
            )  # fmt: skip
    loaded: Counter[str] = Counter()

    def note(sender: type[Model], **_: object) -> None:
        loaded[sender.__name__] += 1

    post_init.connect(note, weak=False, dispatch_uid="count")
    try:
        page = desk.get(PAGE).text
    finally:
        post_init.disconnect(dispatch_uid="count")
    assert page.count("the last saved one is 8") == 3
    assert (loaded["RunConfigVersion"], loaded["Checkpoint"]) == (3, 3)


def test_a_run_that_was_just_opened_is_given_time(alice: User) -> None:
    run = run_make(alice)
    assert titles(alice) == ["The coordinator never reported"]
    Run.objects.filter(pk=run.pk).update(state_changed_at=timezone.now())
    assert titles(alice) == []


def test_a_broken_audit_log_is_for_the_staff(alice: User, bob: User, swarm: Swarm) -> None:
    AuditCheck.objects.create(
        at=timezone.now(), num_entries=9, broken_seq=4, text="entry 4 was changed"
    )
    assert titles(alice) == ["The audit log was tampered with"]
    assert titles(bob) == []


def test_everybody_sees_the_queue_of_their_own_runs(swarm: Swarm, alice: User) -> None:
    failed(swarm.run, "trainer-1")
    failed(run_make(alice, "other"), "trainer-9")
    erin = user_make("erin")
    client = Client()
    client.force_login(erin)
    assert client.get(PAGE).status_code == 403
    RunMember.objects.create(run=swarm.run, user=erin, part=RunMember.Part.VIEWER)
    page = client.get(PAGE).text
    assert "trainer-1 gave up" in page
    assert "trainer-9" not in page
