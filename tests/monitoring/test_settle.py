"""Live states stay true when nothing is heard."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from tests.factories_runs import Swarm, run_make, snapshot_take, swarm_make
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.events import MEMORY_STORE, live_ring_since, live_state_read
from web.monitoring.models import RunEvent, RunSwarm
from web.monitoring.selectors import live_state, run_events, runs_summaries
from web.monitoring.services import live_states_refresh
from web.monitoring.tasks import live_states_refresh_task
from web.runs.models import Run
from web.runs.services import run_transition

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 1, users=[bob])


def test_a_silent_coordinator_makes_the_run_unknown_at_once_when_read(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now)
    assert live_state(swarm.run, now=now)["state"] == "warming_up"
    later = live_state(swarm.run, now=now + timedelta(seconds=90))
    assert later["reason"] == "unknown: the coordinator was last heard 90 s ago"
    assert runs_summaries(None, now=now + timedelta(seconds=90))[0].state == "unknown"
    peer = next(iter(later["peers"].values()))
    assert peer["state"] == "training", "the silence is the coordinator's, not the peer's"


def test_the_tick_publishes_the_silence_once(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now)
    since = live_state(swarm.run)["seq"]
    assert live_states_refresh(now) == 0
    assert live_states_refresh(now + timedelta(seconds=90)) == 1
    assert live_states_refresh(now + timedelta(seconds=91)) == 0
    messages = live_ring_since("demo", since)
    assert messages is not None
    assert [m["patch"]["state"] for m in messages] == ["unknown"]


def test_the_words_are_in_every_patch(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now)
    since = live_state(swarm.run)["seq"]
    snapshot_take(swarm, now + timedelta(seconds=2))
    (message,) = live_ring_since("demo", since) or []
    assert {"state", "reason", "as_of"} <= set(message["patch"])
    assert "title" not in message["patch"]


def test_a_move_of_the_organiser_is_an_event_and_a_patch(swarm: Swarm, alice: User) -> None:
    snapshot_take(swarm)
    since = live_state(swarm.run)["seq"]
    run_transition(alice, swarm.run, "pause", "disk full")
    event, patch = live_ring_since("demo", since) or []
    assert event["event"]["text"] == "The run was paused by alice: disk full"
    assert (patch["patch"]["state"], patch["patch"]["reason"]) == (
        "paused",
        "paused by alice: disk full",
    )
    assert run_events(swarm.run, 1)[0].kind == "state.changed"
    assert run_events(swarm.run, 5, before=event["seq"])[0].seq < event["seq"]


def test_a_rolled_back_move_leaves_no_number_behind(swarm: Swarm, alice: User) -> None:
    snapshot_take(swarm)
    before = Run.objects.get().live_seq
    with transaction.atomic():
        run_transition(alice, swarm.run, "pause")
        transaction.set_rollback(True)
    assert Run.objects.get().live_seq == before
    assert live_ring_since("demo", before) == []


@pytest.mark.parametrize(("seconds", "state"), [(10, "finishing"), (200, "finished")])
def test_a_finishing_run_is_completed_when_its_time_is_over(
    swarm: Swarm, alice: User, seconds: int, state: str
) -> None:
    snapshot_take(swarm)
    run_transition(alice, swarm.run, "finish", "done")
    live_states_refresh(timezone.now() + timedelta(seconds=seconds))
    run = Run.objects.get()
    assert run.state == state
    if state == RunState.FINISHED:
        assert run.state_reason == "finished: done"
        assert live_state(run)["state"] == "finished"


def test_a_finishing_run_without_trainers_is_completed_at_once(alice: User) -> None:
    run = run_make(alice)
    run_transition(alice, run, "finish")
    live_states_refresh_task()
    assert Run.objects.get().state == RunState.FINISHED


def test_redis_is_rebuilt_from_the_database(swarm: Swarm) -> None:
    snapshot_take(swarm)
    MEMORY_STORE.clear()
    call_command("rebuild_live_state")
    assert live_state_read("demo") == RunSwarm.objects.get().live
    assert not RunEvent.objects.filter(kind="").exists()
