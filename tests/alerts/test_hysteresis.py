"""Alerts do not flap: properties over any sequence of checks."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from web.alerts.hysteresis import GAP, Move, Track, track_step

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
Checks = list[tuple[int, bool | None]]
checks = st.lists(
    st.tuples(st.integers(1, 400), st.sampled_from([True, True, False, False, None])), max_size=120
)
waits = st.integers(0, 300)


def moves(rows: Checks, opens: int, closes: int) -> list[tuple[datetime, Move]]:
    track, now = Track(), BEGIN
    found: list[tuple[datetime, Move]] = []
    for step, is_bad in rows:
        now += timedelta(seconds=step)
        track, move = track_step(track, is_bad, now, opens_seconds=opens, closes_seconds=closes)
        if move is not Move.NONE:
            found.append((now, move))
    return found


@given(checks, waits, waits)
def test_it_opens_and_closes_in_turn_and_never_sooner_than_its_patience(
    rows: Checks, opens: int, closes: int
) -> None:
    found = moves(rows, opens, closes)
    assert [move for _, move in found] == [Move.OPEN, Move.CLOSE] * (len(found) // 2) + (
        [Move.OPEN] if len(found) % 2 else []
    )
    for (before, _), (after, move) in pairwise(found):
        assert (after - before).total_seconds() >= (opens if move is Move.OPEN else closes)


@given(checks, waits, waits)
def test_whatever_moved_was_seen_the_whole_wait_without_a_gap(
    rows: Checks, opens: int, closes: int
) -> None:
    at, seen = BEGIN, []
    for step, is_bad in rows:
        at += timedelta(seconds=step)
        seen.append((at, is_bad))
    for now, move in moves(rows, opens, closes):
        wait = timedelta(seconds=opens if move is Move.OPEN else closes)
        until = [row for row in seen if row[0] <= now]
        run: list[datetime] = []
        for when, is_bad in reversed(until):
            if is_bad is not (move is Move.OPEN) or (run and run[-1] - when > GAP):
                break
            run.append(when)
        assert run
        assert run[0] - run[-1] >= wait


@given(st.lists(st.sampled_from([True, False]), min_size=2, max_size=100))
def test_a_figure_that_swings_at_every_check_opens_nothing(swing: list[bool]) -> None:
    rows: Checks = [(15, i % 2 == 0) for i in range(len(swing))]
    assert moves(rows, 30, 30) == []


def test_checks_without_evidence_neither_open_nor_close() -> None:
    assert moves([(15, True), (15, None), (15, True)], 20, 20) == []
    assert [m for _, m in moves([(15, True), (15, True), (15, True), (300, None)], 20, 20)] == [
        Move.OPEN
    ]


def test_a_clock_that_goes_back_begins_the_wait_anew() -> None:
    track, _ = track_step(Track(), True, BEGIN, opens_seconds=60, closes_seconds=60)
    back = BEGIN - timedelta(hours=1)
    track, move = track_step(track, True, back, opens_seconds=60, closes_seconds=60)
    assert (move, track.changing_since) == (Move.NONE, back)


def test_without_patience_the_first_check_decides() -> None:
    assert [m for _, m in moves([(1, True), (1, False)], 0, 0)] == [Move.OPEN, Move.CLOSE]
