"""Runs move along the allowed transitions only."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import RUN_TRANSITIONS, RunState
from web.runs.lifecycle import (
    IllegalMove,
    RunAction,
    is_due,
    state_after,
    state_sentence,
    until_check,
)


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


NOW = datetime(2026, 12, 2, 12, tzinfo=UTC)
instants = st.timedeltas(timedelta(days=-200), timedelta(days=400)).map(lambda d: NOW + d)


@given(st.sampled_from(RunAction), st.none() | instants)
def test_only_a_pause_has_an_end_and_it_lies_in_reach(
    action: RunAction, until: datetime | None
) -> None:
    try:
        until_check(action, until, NOW)
    except IllegalMove:
        assert until is not None
        assert (
            action is not RunAction.PAUSE
            or not NOW < until <= NOW + timedelta(days=90)
            or (until < NOW + timedelta(minutes=1))
        )
        return
    assert until is None or action is RunAction.PAUSE
    assert until is None or NOW < until <= NOW + timedelta(days=90)


@given(st.sampled_from(RunState), st.none() | instants, instants, instants)
def test_only_a_pause_is_due_and_once_due_it_stays_so(
    state: RunState, until: datetime | None, now: datetime, later: datetime
) -> None:
    if is_due(state, until, now):
        assert state is RunState.PAUSED
        assert until is not None
        assert is_due(state, until, max(now, later))


def test_the_end_of_a_pause_is_told_in_words() -> None:
    text = state_sentence(RunAction.PAUSE, "alice", "disk full", NOW)
    assert text == "paused by alice until 2026-12-02 12:00 UTC: disk full"
