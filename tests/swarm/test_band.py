"""What is usual is learned from what was accepted, and never stops a peer for good."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.swarm.band import NormBand

USUAL = st.lists(st.floats(0.5, 2.0), min_size=8, max_size=80)


def learned(values: list[float], samples: float = 100.0) -> NormBand:
    band = NormBand()
    for value in values:
        assert band.accept(value, samples)
    return band


@given(USUAL, st.floats(0.1, 5.0))
def test_values_like_those_before_are_accepted(values: list[float], value: float) -> None:
    assert learned(values).accept(value, 100.0)


@given(USUAL, st.floats(1e6, 1e300))
def test_values_far_above_are_refused_and_change_nothing(values: list[float], value: float) -> None:
    band = learned(values)
    before = band.limit(100.0)
    assert not band.accept(value, 100.0)
    assert band.limit(100.0) == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_from_the_first_epoch(value: float) -> None:
    band = NormBand()
    assert not band.accept(value)
    assert band.limit() == math.inf


@given(USUAL)
def test_a_hundred_times_the_usual_is_refused(values: list[float]) -> None:
    steady = [1.0 + value / 100 for value in values]
    assert not learned(steady).accept(100.0, 100.0)


def test_a_slow_drift_is_followed() -> None:
    band = learned([1.0] * 8)
    value = 1.0
    for _ in range(200):
        value *= 1.1
        assert band.accept(value, 100.0)


def test_a_mean_over_few_samples_may_be_larger() -> None:
    band = learned([1.0] * 16)
    assert band.limit(1.0) == pytest.approx(10 * band.limit(100.0))
    assert band.limit(10_000.0) == band.limit(100.0)


def test_after_three_refusals_in_a_row_it_learns_anew() -> None:
    band = learned([1.0] * 16)
    assert [band.accept(1000.0, 100.0) for _ in range(4)] == [False, False, False, True]


def test_a_gradient_of_zero_is_fine_and_teaches_nothing() -> None:
    band = learned([1.0] * 8)
    before = band.limit(100.0)
    assert band.accept(0.0, 100.0)
    assert band.limit(100.0) == before
