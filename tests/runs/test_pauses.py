"""Pauses that end by themselves, and what an archived run still is."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import token_make
from tests.factories_runs import peer_joined, peer_make, run_make
from training.protocol.api import PassRequest
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.states import Command
from web.accounts.credentials import Credential, credential_of_token
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.monitoring.services import peer_heartbeat
from web.project.celery import app
from web.runs.models import Run
from web.runs.services import run_message_send, run_transition, runs_resume_due
from web.runs.tasks import runs_resume_due_task

pytestmark = pytest.mark.django_db
REPORT = PassRequest()


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def credential_make(run: Run, user: User) -> Credential:
    volunteer = peer_make(run, user)
    return credential_of_token(token_make(user, device=volunteer.device), timezone.now())


def test_a_pause_reaches_trainers_and_ends_by_itself(alice: User, bob: User, run: Run) -> None:
    credential = credential_make(run, bob)
    now = timezone.now()
    until = now + timedelta(hours=1)
    run_transition(alice, run, "pause", "a new disk", until=until)
    assert Run.objects.get().state_until == until
    run.refresh_from_db()
    assert peer_heartbeat(credential, run, REPORT, now).commands == (Command.PAUSE,)

    assert runs_resume_due(until - timedelta(seconds=1)) == 0
    assert Run.objects.get().state == "paused"
    assert runs_resume_due(until) == 1
    assert runs_resume_due(until) == 0
    run.refresh_from_db()
    assert (run.state, run.state_until) == ("open", None)
    assert run.state_reason == "opened: the pause has ended"
    assert peer_heartbeat(credential, run, REPORT, timezone.now()).commands == (Command.RESUME,)
    entry = AuditEntry.objects.filter(code="run.state.changed").latest("id")
    assert entry.actor_name == ""
    assert RunEvent.objects.first().text == "The run was opened: the pause has ended"  # type: ignore[union-attr]


def test_the_scheduler_looks_for_pauses_that_are_over(alice: User, run: Run) -> None:
    run_transition(alice, run, "pause", until=timezone.now() + timedelta(minutes=5))
    Run.objects.update(state_until=timezone.now() - timedelta(seconds=1))
    runs_resume_due_task()
    assert Run.objects.get().state == "open"
    scheduled = app.conf.beat_schedule["runs-resume"]
    assert scheduled["task"] == runs_resume_due_task.name
    assert scheduled["schedule"] <= 10


def test_a_pause_without_an_end_waits_for_its_organiser(alice: User, run: Run) -> None:
    run_transition(alice, run, "pause")
    assert runs_resume_due(timezone.now() + timedelta(days=999)) == 0
    assert Run.objects.get().state == "paused"


def test_an_organiser_who_opens_or_finishes_first_is_not_overruled(alice: User, run: Run) -> None:
    until = timezone.now() + timedelta(minutes=5)
    run_transition(alice, run, "pause", until=until)
    run_transition(alice, run, "finish")
    assert Run.objects.get().state_until is None
    assert runs_resume_due(until) == 0
    assert Run.objects.get().state == "finishing"


@pytest.mark.parametrize(
    ("event", "delta"),
    [("finish", timedelta(hours=1)), ("pause", timedelta(0)), ("pause", timedelta(days=-1)),
     ("pause", timedelta(days=91))],
)  # fmt: skip
def test_an_end_that_makes_no_sense_is_refused(
    alice: User, run: Run, event: str, delta: timedelta
) -> None:
    with pytest.raises(AppError, match="until: ") as error:
        run_transition(alice, run, event, until=timezone.now() + delta)
    assert error.value.code == ErrorCode.BODY_INVALID
    assert Run.objects.get().state == "open"


def test_an_archived_run_is_read_by_all_and_joined_by_nobody(
    client: Client, alice: User, bob: User, run: Run
) -> None:
    credential = credential_make(run, bob)
    for event in ("pause", "finish"):
        run_transition(alice, run, event)
    Run.objects.update(state="finished")
    run_transition(alice, run, "archive")
    for path in ("/runs/demo/", "/api/v1/runs/demo/", "/api/v1/runs/demo/config/"):
        assert client.get(path).status_code == 200, path
    with pytest.raises(AppError) as error:
        peer_heartbeat(credential, run, REPORT, timezone.now())
    assert error.value.code == ErrorCode.RUN_OVER
    for user in (alice, bob):
        with pytest.raises(AppError) as error:
            peer_joined(run, user, key_generate())
        assert error.value.code == ErrorCode.RUN_OVER
    for event in ("open", "pause", "finish", "archive"):
        with pytest.raises(AppError):
            run_transition(alice, run, event)


def test_a_message_stands_in_the_events_with_its_author(alice: User, bob: User, run: Run) -> None:
    run_message_send(alice, run, "  back\nat six ")
    event = RunEvent.objects.first()
    assert event is not None
    assert (event.kind, event.text) == ("message.sent", "alice says: back at six")
    assert AuditEntry.objects.get(code="run.message.sent").data == {"text": "back at six"}
    for user, text in ((bob, "hello"), (alice, "  "), (alice, "x" * 201)):
        with pytest.raises(AppError):
            run_message_send(user, run, text)
    assert RunEvent.objects.filter(kind="message.sent").count() == 1
