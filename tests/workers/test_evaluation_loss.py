"""Evaluations on nodes that vanished end as failures with a reason, and can be asked for again."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.factories import node_make
from tests.factories_runs import draft_make, run_make
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Checkpoint, Run
from web.workers.evaluation_loss import LIMIT
from web.workers.evaluations import evaluation_automatic, evaluation_request, evaluations_look
from web.workers.models import EvaluationJob, ManagedWorker, WorkerNode
from web.workers.removal import node_forget

pytestmark = pytest.mark.django_db
NOW = timezone.now()
LATE = NOW + LIMIT + timedelta(minutes=1)


@pytest.fixture
def run(alice: User, settings: Settings, tmp_path: Path) -> Run:
    """A run whose coordinator, and so whose checkpoints, are on another node."""
    settings.DATA_DIR = tmp_path
    run = run_make(alice, draft=draft_make(evaluation={"automatic": True, "samples": 64}))
    ManagedWorker.objects.create(run=run, kind="coordinator", name="coordinator", node="annex")
    node_make("annex")
    return run


def checkpoint_make(run: Run, epoch: int) -> Checkpoint:
    return Checkpoint.objects.create(
        run=run, lineage=1, epoch=epoch, config_version=1, files=[], manifest="", saved_at=NOW
    )


def job_make(run: Run, epoch: int, **fields: object) -> EvaluationJob:
    job = evaluation_request(None, checkpoint_make(run, epoch))
    assert job.node == "annex"
    EvaluationJob.objects.filter(pk=job.pk).update(**fields)
    return job


def look(job: EvaluationJob) -> EvaluationJob:
    evaluations_look(LATE)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize(("state", "told"), [("running", "while"), ("waiting", "before")])
def test_one_on_a_node_that_vanished_fails_after_its_time(
    run: Run, alice: User, state: str, told: str
) -> None:
    job = job_make(run, 1, state=state, started_at=NOW, pid=4711)
    WorkerNode.objects.update(seen_at=LATE)
    assert look(job).state == state, "its node is there"
    WorkerNode.objects.update(seen_at=NOW)
    EvaluationJob.objects.update(started_at=LATE, asked_at=LATE)
    assert look(job).state == state, "it may come back"
    EvaluationJob.objects.update(started_at=NOW, asked_at=NOW)
    assert look(job).state == "failed"
    assert job.reason.startswith(f"Node annex vanished {told} it ran there.")
    assert (job.pid, job.finished_at) == (None, LATE)
    entry = AuditEntry.objects.get(code="evaluation.failed")
    assert (entry.run, entry.data["epoch"], entry.data["reason"]) == ("demo", 1, job.reason)
    assert evaluation_request(alice, Checkpoint.objects.get()).state == "waiting"


def test_a_forgotten_node_takes_its_evaluations_along(run: Run, alice: User) -> None:
    jobs = [job_make(run, 1, state="running", started_at=NOW), job_make(run, 2, state="done")]
    node_forget(alice, WorkerNode.objects.get(), NOW + timedelta(hours=1))
    for job in jobs:
        job.refresh_from_db()
    assert [job.state for job in jobs] == ["failed", "done"]
    assert AuditEntry.objects.get(code="evaluation.failed").data["epoch"] == 1


def test_two_who_ask_at_the_same_moment_get_one_job_and_a_clear_answer(
    run: Run, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = checkpoint_make(run, 1)
    evaluation_request(alice, checkpoint)
    rows = EvaluationJob.objects.none()
    monkeypatch.setattr(EvaluationJob.objects, "select_for_update", lambda **_: rows)
    with pytest.raises(AppError, match="Somebody else asked for this evaluation"):
        evaluation_request(alice, checkpoint)
    evaluation_automatic(run)  # a coordinator's checkpoint is kept all the same
    assert EvaluationJob.objects.count() == 1
