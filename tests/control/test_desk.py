"""What an organiser sees and does."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from tests.factories_runs import config_publish, peer_make, run_make, snapshot_take, swarm_make
from training.protocol.states import RUN_TRANSITIONS, RunState
from web.accounts.models import User
from web.control.moves import move_effect, moves_of
from web.core.audit import audit_record
from web.core.models import AuditEntry
from web.runs.models import Checkpoint, Run
from web.workers.models import ManagedWorker, WorkerEvent


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def test_the_list_shows_states_in_words_with_their_evidence(desk: Client, run: Run) -> None:
    swarm = swarm_make(run)
    snapshot_take(swarm)
    page = desk.get("/control/").text
    assert "The demo run" in page
    assert "Warming up" in page
    assert "2 peers" in page


def test_the_list_costs_as_many_queries_for_many_runs_as_for_one(
    desk: Client,
    alice: User,
    bob: User,
    run: Run,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        swarm_make(run_make(alice, f"run-{number}"), 1, users=[bob])
    with django_assert_max_num_queries(13):
        assert desk.get("/control/").status_code == 200


def test_the_page_of_a_run_costs_a_bounded_number_of_queries(
    desk: Client, run: Run, bob: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(8):
        peer_make(run, bob, f"machine {number}")
        ManagedWorker.objects.create(run=run, kind="trainer", name=f"trainer-{number}")
        config_publish(run, swarm={"target_batch_size": 100 + number, "min_peers": 1})
    with django_assert_max_num_queries(35):
        assert desk.get("/control/runs/demo/").status_code == 200


def test_a_run_is_paused_with_a_reason_after_the_effect_was_said(desk: Client, run: Run) -> None:
    snapshot_take(swarm_make(run))
    asked = desk.get("/control/runs/demo/moves/pause/").text
    assert "2 trainers will stop computing" in asked
    assert Run.objects.get().state == "open", "asking changes nothing"
    answer = desk.post("/control/runs/demo/moves/pause/", {"reason": "disk full"}, follow=True)
    assert "The demo run was paused by alice: disk full." in answer.text
    assert Run.objects.get().state == "paused"
    entry = AuditEntry.objects.filter(code="run.state.changed").latest("id")
    assert (entry.actor_name, entry.data["reason"]) == ("alice", "disk full")
    assert "disk full" in desk.get("/control/audit/?q=state.changed").text


def test_only_legal_moves_are_offered_and_taken(desk: Client, run: Run) -> None:
    page = desk.get("/control/runs/demo/").text
    for event, is_offered in (("open", 0), ("pause", 1), ("finish", 1), ("archive", 0)):
        assert page.count(f"/moves/{event}/") == is_offered
    answer = desk.get("/control/runs/demo/moves/archive/", follow=True)
    assert "cannot do that" in answer.text
    answer = desk.post("/control/runs/demo/moves/archive/", {"reason": ""})
    assert answer.status_code == 409
    assert "cannot be archived" in answer.text
    assert desk.post("/control/runs/demo/moves/complete/", {}).status_code == 422
    assert Run.objects.get().state == "open"


@pytest.mark.parametrize("state", list(RunState))
def test_every_offered_move_is_legal_and_says_what_it_does(state: RunState) -> None:
    for move in moves_of(state):
        assert move.target in RUN_TRANSITIONS[state]
        sentences = move_effect(move, state, 1)
        assert sentences
        assert all(sentence.endswith(".") for sentence in sentences)


def test_trainers_are_launched_with_a_coordinator_first(desk: Client, run: Run) -> None:
    answer = desk.post("/control/runs/demo/workers/launch/", {"count": 2}, follow=True)
    assert "Asked for coordinator, trainer-1, trainer-2" in answer.text
    desk.post("/control/runs/demo/workers/launch/", {"count": 1})
    rows = ManagedWorker.objects.order_by("id").values_list("name", "kind", "desired")
    assert list(rows) == [
        ("coordinator", "coordinator", "running"),
        ("trainer-1", "trainer", "running"),
        ("trainer-2", "trainer", "running"),
        ("trainer-3", "trainer", "running"),
    ]
    assert AuditEntry.objects.filter(code="worker.requested", actor_name="alice").count() == 4


@pytest.mark.parametrize("count", ["0", "9", "many", ""])
def test_an_absurd_number_of_trainers_is_refused(desk: Client, run: Run, count: str) -> None:
    answer = desk.post("/control/runs/demo/workers/launch/", {"count": count}, follow=True)
    assert "One to eight trainers" in answer.text
    assert not ManagedWorker.objects.exists()


def test_a_run_has_a_limit_of_trainers(desk: Client, run: Run) -> None:
    for number in range(30):
        ManagedWorker.objects.create(run=run, kind="trainer", name=f"trainer-{number}")
    assert desk.post("/control/runs/demo/workers/launch/", {"count": 8}).status_code == 422
    assert ManagedWorker.objects.count() == 30


def test_a_managed_worker_is_stopped_started_and_looked_into(desk: Client, run: Run) -> None:
    worker = ManagedWorker.objects.create(
        run=run, kind="trainer", name="trainer-1", state="failed", last_error="out of memory"
    )
    WorkerEvent.objects.create(worker=worker, kind="failed", text="gave up")
    log = settings.WORKERS_DIR / "demo" / "trainer-1"
    page = desk.get("/control/runs/demo/workers/trainer-1/").text
    assert "out of memory" in page
    assert "gave up" in page
    assert "/trainer-1/start/" in page
    assert str(log) not in page, "paths of the machine are nobody's business"
    desk.post("/control/runs/demo/workers/trainer-1/start/")
    worker.refresh_from_db()
    assert (worker.desired, worker.state) == ("running", "requested")
    desk.post("/control/runs/demo/workers/trainer-1/stop/")
    worker.refresh_from_db()
    assert worker.desired == "stopped"
    assert "/trainer-1/start/" in desk.get("/control/runs/demo/workers/").text


def test_configs_come_with_their_changes_and_checkpoints_with_their_files(
    desk: Client, run: Run, settings: Settings, tmp_path: Path
) -> None:
    settings.CHECKPOINTS_DIR = tmp_path
    (tmp_path / "demo" / "1-00000007").mkdir(parents=True)
    (tmp_path / "demo" / "1-00000007" / "model.safetensors").write_bytes(b"x")
    config_publish(run, swarm={"target_batch_size": 64, "min_peers": 1})
    Checkpoint.objects.create(
        run=run,
        lineage=1,
        epoch=7,
        config_version=2,
        files=[{"name": "model.safetensors", "size": 123456, "sha256": "0" * 64}],
        manifest="",
        saved_at=timezone.now() - timedelta(minutes=3),
    )
    page = desk.get("/control/runs/demo/").text
    assert "swarm.target_batch_size" in page
    assert "<del>100</del>" in page
    assert "<ins>64</ins>" in page
    assert "/checkpoints/7/model.safetensors" in page


def test_a_person_is_suspended_with_a_reason_and_restored(desk: Client, bob: User) -> None:
    assert "end at once" in desk.get("/control/people/bob/ban/").text
    assert desk.post("/control/people/bob/ban/", {"reason": ""}).status_code == 200
    bob.refresh_from_db()
    assert not bob.is_banned, "a reason is needed"
    desk.post("/control/people/bob/ban/", {"reason": "spam"})
    bob.refresh_from_db()
    assert (bob.is_banned, bob.banned_reason) == (True, "spam")
    assert "/people/bob/unban/" in desk.get("/control/people/?q=bob").text
    desk.post("/control/people/bob/unban/")
    bob.refresh_from_db()
    assert not bob.is_banned


def test_nobody_suspends_themselves(desk: Client, alice: User) -> None:
    assert desk.post("/control/people/alice/ban/", {"reason": "tired"}).status_code == 403
    assert "/people/alice/ban/" not in desk.get("/control/people/").text


def test_names_of_strangers_are_text(desk: Client, run: Run, bob: User) -> None:
    peer_make(run, bob, "<script>alert(1)</script>")
    audit_record(bob, "x.done", "<b>demo</b>", {"<i>": "<u>"})
    for path in ("/control/runs/demo/", "/control/audit/"):
        page = desk.get(path).text
        for tag in ("<script>alert", "<b>demo", "<i>", "<u>"):
            assert tag not in page


def test_long_lists_have_pages(desk: Client, alice: User) -> None:
    for number in range(120):
        audit_record(alice, "x.done", f"thing {number}")
    assert "page 1 of 3" in desk.get("/control/audit/?q=x.done").text
    last = desk.get("/control/audit/?q=x.done&page=3").text
    assert "thing 0<" in last
    assert "q=x.done&amp;page=2" in last
