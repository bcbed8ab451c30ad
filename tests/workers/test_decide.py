"""What is done about a managed worker follows from facts alone, and only along allowed moves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import WORKER_TRANSITIONS, WorkerState
from web.workers.decide import (
    MAX_RESTARTS,
    SILENT_SECONDS,
    STARTING_SECONDS,
    Action,
    Facts,
    back_off_seconds,
    decide,
)

HEALTHY = Facts(
    is_wanted=True,
    state=WorkerState.TRAINING,
    has_process=True,
    is_alive=True,
    may_start=True,
    is_due=True,
    num_restarts=0,
    seconds_in_state=30.0,
    stop_seconds=15.0,
    heartbeat_age=1.0,
    is_seen_in_swarm=True,
)
GONE = replace(HEALTHY, is_alive=False, heartbeat_age=None, is_seen_in_swarm=False)
SILENT = replace(HEALTHY, heartbeat_age=None)
IDLE = replace(GONE, has_process=False)

TARGETS = {
    Action.START: WorkerState.STARTING,
    Action.STOP: WorkerState.STOPPING,
    Action.END: WorkerState.STOPPED,
    Action.NOTE_STOPPED: WorkerState.STOPPED,
    Action.NOTE_RUNNING: WorkerState.RUNNING,
    Action.NOTE_TRAINING: WorkerState.TRAINING,
    Action.BACK_OFF: WorkerState.BACKING_OFF,
    Action.KILL: WorkerState.BACKING_OFF,
    Action.GIVE_UP: WorkerState.FAILED,
}
_WITH_PROCESS = ("starting", "running", "training", "stopping")


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        (HEALTHY, Action.NOTHING),
        (replace(IDLE, state=WorkerState.REQUESTED), Action.START),
        (replace(IDLE, state=WorkerState.STOPPED), Action.START),
        (replace(IDLE, state=WorkerState.REQUESTED, may_start=False), Action.NOTHING),
        (replace(IDLE, state=WorkerState.BACKING_OFF), Action.START),
        (replace(IDLE, state=WorkerState.BACKING_OFF, is_due=False), Action.NOTHING),
        (replace(GONE, state=WorkerState.STARTING), Action.BACK_OFF),
        (replace(IDLE, state=WorkerState.STARTING, seconds_in_state=1.0), Action.NOTHING),
        (
            replace(IDLE, state=WorkerState.STARTING, seconds_in_state=STARTING_SECONDS + 1),
            Action.BACK_OFF,
        ),
        (replace(HEALTHY, state=WorkerState.STARTING), Action.NOTE_RUNNING),
        (replace(SILENT, state=WorkerState.STARTING), Action.NOTHING),
        (replace(HEALTHY, state=WorkerState.RUNNING), Action.NOTE_TRAINING),
        (
            replace(HEALTHY, state=WorkerState.RUNNING, is_seen_in_swarm=False),
            Action.NOTHING,
        ),
        (replace(HEALTHY, is_seen_in_swarm=False), Action.NOTE_RUNNING),
        (replace(HEALTHY, heartbeat_age=SILENT_SECONDS + 1), Action.KILL),
        (
            replace(SILENT, state=WorkerState.STARTING, seconds_in_state=SILENT_SECONDS + 1),
            Action.KILL,
        ),
        (replace(SILENT, seconds_in_state=SILENT_SECONDS + 1), Action.NOTHING),
        (GONE, Action.BACK_OFF),
        (
            replace(IDLE, state=WorkerState.BACKING_OFF, num_restarts=MAX_RESTARTS),
            Action.GIVE_UP,
        ),
        (replace(IDLE, state=WorkerState.FAILED), Action.NOTHING),
        (replace(HEALTHY, num_restarts=3, seconds_in_state=601.0), Action.FORGIVE),
        (replace(HEALTHY, is_wanted=False), Action.STOP),
        (replace(HEALTHY, state=WorkerState.STOPPING, seconds_in_state=1.0), Action.NOTHING),
        (replace(HEALTHY, state=WorkerState.STOPPING, seconds_in_state=16.0), Action.END),
        (replace(GONE, state=WorkerState.STOPPING), Action.NOTE_STOPPED),
        (replace(IDLE, state=WorkerState.FAILED, is_wanted=False), Action.NOTE_STOPPED),
        (replace(IDLE, state=WorkerState.STOPPED, is_wanted=False), Action.NOTHING),
    ],
)
def test_facts_lead_to_one_action(facts: Facts, action: Action) -> None:
    assert decide(facts) is action


def test_the_wait_doubles_up_to_five_minutes() -> None:
    waits = [back_off_seconds(number) for number in range(12)]
    assert waits[:4] == [2.0, 4.0, 8.0, 16.0]
    assert waits == sorted(waits)
    assert waits[-1] == back_off_seconds(1000) == 300.0


all_facts = st.builds(
    Facts,
    is_wanted=st.booleans(),
    state=st.sampled_from(WorkerState),
    has_process=st.booleans(),
    is_alive=st.booleans(),
    may_start=st.booleans(),
    is_due=st.booleans(),
    num_restarts=st.integers(0, 2 * MAX_RESTARTS),
    seconds_in_state=st.floats(0, 1000),
    stop_seconds=st.sampled_from((15.0, 30.0)),
    heartbeat_age=st.none() | st.floats(0, 1000),
    is_seen_in_swarm=st.booleans(),
)


@given(all_facts)
def test_no_facts_lead_off_the_allowed_moves(facts: Facts) -> None:
    has_process = facts.has_process and facts.state in _WITH_PROCESS
    facts = replace(facts, has_process=has_process, is_alive=facts.is_alive and has_process)
    target = TARGETS.get(decide(facts))
    assert target is None or target in WORKER_TRANSITIONS[facts.state], (facts, target)
