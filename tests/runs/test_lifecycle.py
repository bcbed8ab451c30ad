"""Runs move along the allowed transitions only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import RUN_TRANSITIONS, RunState
from web.runs.lifecycle import IllegalMove, RunAction, state_after, state_sentence


@given(st.lists(st.sampled_from(RunAction), max_size=30))
def test_no_sequence_of_actions_leaves_the_allowed_transitions(actions: list[RunAction]) -> None:
    state = RunState.DRAFT
    for action in actions:
        try:
            new = state_after(state, action)
        except IllegalMove:
            continue
        assert new in RUN_TRANSITIONS[state]
        state = new


def test_every_state_can_be_reached() -> None:
    reached, edge = set(), {RunState.DRAFT}
    while edge:
        reached |= edge
        edge = {target for state in edge for target in RUN_TRANSITIONS[state]} - reached
    assert reached == set(RunState)


@pytest.mark.parametrize(
    ("state", "action", "text"),
    [
        (RunState.DRAFT, RunAction.PAUSE, "A draft cannot be paused."),
        (RunState.OPEN, RunAction.OPEN, "An open run cannot be opened."),
        (RunState.FINISHED, RunAction.OPEN, "A finished run cannot be opened."),
    ],
)
def test_a_move_that_is_not_allowed_says_so(state: RunState, action: RunAction, text: str) -> None:
    with pytest.raises(IllegalMove, match=text):
        state_after(state, action)


@pytest.mark.parametrize(
    ("actor", "reason", "text"),
    [
        ("alice", "disk  full\n", "paused by alice: disk full"),
        ("alice", " ", "paused by alice"),
        ("", "disk full", "paused: disk full"),
        ("", "", "paused"),
    ],
)
def test_a_move_is_told_in_words(actor: str, reason: str, text: str) -> None:
    assert state_sentence(RunAction.PAUSE, actor, reason) == text
    assert len(state_sentence(RunAction.PAUSE, actor, "x" * 999)) == 300
