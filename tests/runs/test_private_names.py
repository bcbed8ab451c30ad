"""Somebody with a private profile is not named in what all read, whatever they do at the desk."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories_runs import draft_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent, SwarmTurn
from web.runs.lifecycle import RunAction
from web.runs.models import Run
from web.runs.services import (
    run_config_publish,
    run_describe,
    run_message_send,
    run_transition,
)

pytestmark = pytest.mark.django_db
ACTS: dict[str, Callable[[User, Run], object]] = {
    "publish": lambda user, run: run_config_publish(user, run, draft_make(seed=3)),
    "pause": lambda user, run: run_transition(user, run, RunAction.PAUSE, "disk full"),
    "say": lambda user, run: run_message_send(user, run, "Hello."),
    "describe": lambda user, run: run_describe(
        user, run, title="New", summary=run.summary, description="", is_public=True
    ),
}


@pytest.fixture
def run(alice: User) -> Run:
    run = run_make(alice)
    snapshot_take(swarm_make(run))
    return run


@pytest.mark.parametrize("act", ACTS)
def test_a_private_organiser_is_not_named_in_public(act: str, alice: User, run: Run) -> None:
    alice.is_profile_public = False
    alice.save()
    Run.objects.update(state_reason="")  # opened while the profile was public
    run.refresh_from_db()
    RunEvent.objects.all().delete()
    SwarmTurn.objects.all().delete()
    ACTS[act](alice, run)
    run.refresh_from_db()
    said = RunEvent.objects.filter(run=run).order_by("pk").last()
    assert said is not None
    assert "alice" not in said.text
    assert "a volunteer" in said.text
    assert "alice" not in run.state_reason
    assert not SwarmTurn.objects.filter(reason__contains="alice").exists()
    for path in ("/runs/demo/", "/api/v1/runs/demo/", "/api/v1/runs/demo/state/",
                 "/api/v1/runs/demo/events/", "/api/v1/runs/demo/marks/"):  # fmt: skip
        assert "alice" not in Client().get(path).text, path
    last = AuditEntry.objects.order_by("seq").last()
    assert last is not None
    assert last.actor_name == "alice", "the desk knows"


@pytest.mark.parametrize("act", ACTS)
def test_the_audit_log_is_locked_last(act: str, alice: User, run: Run) -> None:
    with CaptureQueriesContext(connection) as queries:
        ACTS[act](alice, run)
    writes = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    first = next(i for i, sql in enumerate(writes) if "core_audit" in sql)
    assert all("core_audit" in sql for sql in writes[first:]), writes[first:]
