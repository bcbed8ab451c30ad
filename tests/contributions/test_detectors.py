"""What looks wrong about a device, and what must not: honest machines, however odd."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.contributions.detectors import (
    CLASS_FACTOR,
    LOSS_EPOCHS,
    Tick,
    clock_is_off,
    is_interleaved,
    loss_is_outlying,
    losses_are_outlying,
    throughput_is_impossible,
)

rates = st.floats(0.1, 1e6)


@given(st.lists(rates, max_size=10), st.floats(0.2, 5.0), rates)
def test_a_machine_within_a_few_times_of_its_class_is_never_too_fast(
    others: list[float], factor: float, base: float
) -> None:
    spread = [base * (1 + (other % 0.5)) for other in others]
    assert not throughput_is_impossible(base * factor, spread)


@given(rates, st.lists(st.floats(0.5, 2.0), min_size=3, max_size=10))
def test_far_above_every_machine_of_the_class_is_impossible(
    base: float, factors: list[float]
) -> None:
    others = [base * factor for factor in factors]
    assert throughput_is_impossible(max(others) * CLASS_FACTOR * 1.1, others)


def test_nothing_is_said_of_a_class_with_few_machines_at_work() -> None:
    assert not throughput_is_impossible(1e9, [1.0, 1.0])
    assert not throughput_is_impossible(1e9, [1.0, 1.0, 0.0, 0.0])


# Spread wider, most of the others can lie at one edge, and what lies at the other is outlying
# indeed: 1.25 is, beside 1.0, 0.75 and 0.75.
@given(st.floats(0.01, 100), st.lists(st.floats(0.85, 1.15), min_size=3, max_size=10), st.data())
def test_losses_that_differ_as_data_does_are_not_outlying(
    base: float, factors: list[float], data: st.DataObject
) -> None:
    own = base * data.draw(st.floats(0.75, 1.25))
    assert not loss_is_outlying(own, [base * f for f in factors])


def test_a_loss_far_from_all_others_is_outlying_when_it_stays_so() -> None:
    others = [2.0, 2.1, 2.2, 1.9]
    assert loss_is_outlying(9.0, others)
    assert not loss_is_outlying(9.0, others[:2])
    assert losses_are_outlying([(9.0, others)] * LOSS_EPOCHS)
    assert not losses_are_outlying([(9.0, others)] * (LOSS_EPOCHS - 1))
    assert not losses_are_outlying([(9.0, others), (2.0, others), (9.0, others)])


work = st.lists(st.tuples(st.floats(0.5, 60), st.integers(0, 500)), min_size=1, max_size=20)


def ticks_of(steps: list[tuple[float, int]], speed: float, start: float = 0.0) -> list[Tick]:
    """Return reports of one process: time and samples add up, no faster than it can compute."""
    ats = accumulate((seconds for seconds, _ in steps), initial=start)
    sums = accumulate((min(n, int(seconds * speed)) for seconds, n in steps), initial=0)
    return [Tick(at, total, speed) for at, total in zip(ats, sums, strict=True)]


@given(work, work, st.floats(1, 50))
def test_one_process_after_another_is_one_machine(
    first: list[tuple[float, int]], second: list[tuple[float, int]], speed: float
) -> None:
    before = ticks_of(first, speed)
    after = ticks_of(second, speed, start=before[-1].at + 1)
    assert not is_interleaved([*before, *after])


@given(st.integers(1000, 10**6), st.integers(3, 10))
def test_two_processes_that_report_in_turn_are_two_places(ahead: int, number: int) -> None:
    ticks = []
    for turn in range(number):
        ticks.append(Tick(turn * 4.0, ahead + turn * 20, 5.0))
        ticks.append(Tick(turn * 4.0 + 2, turn * 20, 5.0))
    assert is_interleaved(ticks)


@pytest.mark.parametrize(
    ("lates", "is_off"),
    [
        ([0.0] * 5, False),
        ([89.0] * 5, False),
        ([91.0] * 5, True),
        ([-91.0] * 5, True),
        ([500.0] * 2, False),
        ([0.0, 500.0, 500.0, 500.0], True),
        ([500.0, 500.0, 0.0], False),
    ],
)
def test_a_clock_is_off_when_the_last_reports_were_dated_wrongly(
    lates: list[float], is_off: bool
) -> None:
    assert clock_is_off([Tick(n * 2.0, n, 5.0, late) for n, late in enumerate(lates)]) is is_off
