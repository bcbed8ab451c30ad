"""State words follow from evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import LiveState, PeerState, RunState
from web.monitoring.evidence import (
    GONE,
    SwarmEvidence,
    age,
    peer_state,
    stall_seconds,
    swarm_is_empty,
    swarm_state,
)

TRAINING = (PeerState.TRAINING, PeerState.TRAINING)
BASE = {
    "run_state": RunState.OPEN,
    "heard_seconds": 1.0,
    "epoch": 12,
    "epoch_seconds": 5.0,
    "has_finished_epoch": True,
    "peers": TRAINING,
    "samples_accumulated": 61,
    "target_batch_size": 100,
    "samples_per_second": 10.0,
}


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        ({}, "training", "training: epoch 12, 2 peers, 61 % of the batch"),
        ({"peers": ()}, "waiting_for_peers", "waiting for peers (0 of 1)"),
        ({"min_peers": 4}, "waiting_for_peers", "waiting for peers (2 of 4)"),
        ({"peers": (PeerState.SILENT,)}, "waiting_for_peers", "waiting for peers (0 of 1)"),
        ({"epoch_seconds": 720.0}, "stalled", "stalled: no epoch for 12 min, 2 peers"),
        (
            {"heard_seconds": 90.0},
            "unknown",
            "unknown: the coordinator was last heard 90 s ago",
        ),
        ({"samples_accumulated": 100}, "averaging", "averaging: epoch 12, 2 peers"),
        (
            {"peers": (PeerState.AVERAGING, PeerState.TRAINING)},
            "averaging",
            "averaging: epoch 12, 2 peers",
        ),
        (
            {"peers": (PeerState.SYNCING,)},
            "warming_up",
            "warming up: 1 peer loading the state",
        ),
        (
            {"has_finished_epoch": False, "epoch": 0},
            "warming_up",
            "warming up: first epoch, 2 peers, 61 % of the batch",
        ),
        (
            {"heard_seconds": None, "changed_seconds": 10.0},
            "warming_up",
            "warming up: waiting for the coordinator's first report",
        ),
        (
            {"heard_seconds": None, "changed_seconds": 600.0},
            "unknown",
            "unknown: no coordinator has reported in 10 min",
        ),
        (
            {"run_state": RunState.PAUSED, "run_text": "paused by alice: disk full"},
            "paused",
            "paused by alice: disk full",
        ),
        (
            {
                "run_state": RunState.PAUSED,
                "run_text": "paused by alice until 2026-12-02 18:00 UTC: disk full",
                "heard_seconds": 900.0,
            },
            "paused",
            "paused by alice until 2026-12-02 18:00 UTC: disk full",
        ),
        ({"run_state": RunState.DRAFT}, "draft", "draft: not opened yet"),
        (
            {"run_state": RunState.DRAFT, "has_config": False},
            "draft",
            "draft: not opened yet, and no config is published",
        ),
        (
            {"run_state": RunState.FINISHING, "run_text": "finished by alice"},
            "finishing",
            "finishing: 2 trainers still to leave; finished by alice",
        ),
        ({"run_state": RunState.FINISHED, "run_text": "finished"}, "finished", "finished"),
        ({"run_state": RunState.ARCHIVED, "run_text": "archived"}, "finished", "archived"),
    ],
)
def test_the_state_names_its_evidence(changes: dict[str, object], state: str, reason: str) -> None:
    evidence = SwarmEvidence(**{**BASE, **changes})  # type: ignore[arg-type]
    assert swarm_state(evidence) == (state, reason)


def test_an_epoch_is_overdue_when_the_speed_promised_more() -> None:
    slow = {**BASE, "target_batch_size": 10_000, "samples_per_second": 1.0}
    assert stall_seconds(10_000, 1.0) == 40_000
    assert stall_seconds(10_000, 0.0) == 300
    evidence = SwarmEvidence(**{**slow, "epoch_seconds": 39_000.0})  # type: ignore[arg-type]
    assert swarm_state(evidence)[0] == LiveState.TRAINING


@pytest.mark.parametrize(
    ("claimed", "seconds", "barred", "state"),
    [
        ("training", 0, False, "training"),
        ("training", 46, False, "silent"),
        ("training", 121, False, "left"),
        ("left", 0, False, "left"),
        ("silent", 0, False, "silent"),
        ("training", 0, True, "banned"),
        ("left", 500, True, "banned"),
    ],
)
def test_a_peer_ages_from_its_word_to_silent_to_left(
    claimed: str, seconds: float, barred: bool, state: str
) -> None:
    assert peer_state(PeerState(claimed), seconds, is_barred=barred) == state


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"), (3.4, "3 s"), (95, "90 s"), (119, "110 s"), (120, "2 min"),
        (7199, "119 min"), (7200, "2 h"), (172_799, "47 h"), (172_800, "2 days"),
    ],
)  # fmt: skip
def test_durations_are_one_coarse_unit(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_a_swarm_of_gone_peers_is_empty() -> None:
    assert swarm_is_empty(GONE)
    assert not swarm_is_empty([PeerState.LEFT, PeerState.SYNCING])


@given(
    run_state=st.sampled_from(RunState),
    heard=st.none() | st.floats(0, 1e6),
    epoch_seconds=st.none() | st.floats(0, 1e7),
    peers=st.lists(st.sampled_from(PeerState), max_size=5).map(tuple),
    min_peers=st.integers(1, 5),
    accumulated=st.integers(0, 10**9),
    target=st.integers(1, 10**9),
    speed=st.floats(0, 1e9),
)
def test_training_is_never_claimed_without_evidence(
    run_state: RunState,
    heard: float | None,
    epoch_seconds: float | None,
    peers: tuple[PeerState, ...],
    min_peers: int,
    accumulated: int,
    target: int,
    speed: float,
) -> None:
    evidence = SwarmEvidence(
        run_state=run_state,
        heard_seconds=heard,
        epoch_seconds=epoch_seconds,
        peers=peers,
        min_peers=min_peers,
        samples_accumulated=accumulated,
        target_batch_size=target,
        samples_per_second=speed,
    )
    state, reason = swarm_state(evidence)
    assert reason
    if state in (LiveState.TRAINING, LiveState.AVERAGING):
        assert run_state is RunState.OPEN
        assert heard is not None
        assert heard <= 20
        assert evidence.num_peers >= min_peers
    if state is LiveState.PAUSED:
        assert run_state is RunState.PAUSED
