"""Auxiliary peers at the desk: launched, listed and bounded like trainers."""

import pytest
from django.test import Client

from tests.factories_runs import run_make
from web.accounts.models import User
from web.core.models import AuditEntry
from web.runs.models import Run, RunMember
from web.workers.models import ManagedWorker

LAUNCH = "/control/runs/demo/workers/launch/"


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.fixture
def desk(client: Client, alice: User, run: Run) -> Client:
    client.force_login(alice)
    return client


def test_auxiliary_peers_are_launched_from_the_desk_and_the_audit_says_so(desk: Client) -> None:
    assert "Auxiliary peers" in desk.get("/control/runs/demo/").text
    desk.post(LAUNCH, {"count": 1})
    answer = desk.post(LAUNCH, {"kind": "auxiliary", "count": 2, "threads": 2}, follow=True)
    assert "Asked for auxiliary-1, auxiliary-2" in answer.text
    entry = AuditEntry.objects.get(code="worker.requested", target="demo/auxiliary-2")
    assert (entry.actor_name, entry.data["kind"], entry.data["threads"]) == (
        "alice",
        "auxiliary",
        2,
    )
    table = desk.get("/control/runs/demo/workers/").text
    places = [table.index(name) for name in ("coordinator", "trainer-1", "auxiliary-1")]
    assert places == sorted(places), "the coordinator leads, also the alphabet"


def test_the_first_auxiliary_peer_brings_the_coordinator_that_lets_it_in(desk: Client) -> None:
    desk.post(LAUNCH, {"kind": "auxiliary", "count": 1})
    names = ManagedWorker.objects.order_by("id").values_list("name", "kind")
    assert list(names) == [("coordinator", "coordinator"), ("auxiliary-1", "auxiliary")]


def test_an_auxiliary_peer_is_stopped_started_and_restarted(desk: Client, run: Run) -> None:
    desk.post(LAUNCH, {"kind": "auxiliary", "count": 1})
    for word, desired in (("stop", "stopped"), ("start", "running"), ("restart", "restarting")):
        desk.post(f"/control/runs/demo/workers/auxiliary-1/{word}/")
        assert ManagedWorker.objects.get(name="auxiliary-1").desired == desired


def test_a_run_has_a_limit_of_auxiliary_peers_beside_that_of_trainers(
    desk: Client, run: Run
) -> None:
    for number in range(12):
        ManagedWorker.objects.create(run=run, kind="auxiliary", name=f"auxiliary-{number + 1}")
    answer = desk.post(LAUNCH, {"kind": "auxiliary", "count": 5})
    assert answer.status_code == 422
    assert "at most 16 auxiliary peers" in answer.text
    assert desk.post(LAUNCH, {"kind": "auxiliary", "count": 4}).status_code == 302
    assert desk.post(LAUNCH, {"kind": "trainer", "count": 8}).status_code == 302


@pytest.mark.parametrize("part", ["moderator", "viewer"])
def test_whoever_may_not_launch_trainers_may_not_launch_auxiliary_peers(
    client: Client, bob: User, run: Run, part: str
) -> None:
    RunMember.objects.create(run=run, user=bob, part=part)
    client.force_login(bob)
    assert client.post(LAUNCH, {"kind": "auxiliary", "count": 1}).status_code == 403
    assert not ManagedWorker.objects.exists()
