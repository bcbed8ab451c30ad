"""The robust mean: exact among honest peers, bounded whatever one of eight sends."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.swarm.clipping import Limits, robust_mean, weight_plausible

LIMITS = Limits(max_weight=1000.0, floor=0.1, reply_ratio=10.0)
SEEDS = st.integers(0, 2**31)


def gradients(seed: int, weights: list[float], size: int = 500) -> list[torch.Tensor]:
    """Return what honest peers send: one signal, and noise by the number of samples."""
    generator = torch.Generator().manual_seed(seed)
    signal = torch.randn(size, generator=generator) * float(torch.rand(1, generator=generator))
    return [
        signal + torch.randn(size, generator=generator) * math.sqrt(100.0 / weight)
        for weight in weights
    ]


def plain_mean(parts: list[torch.Tensor], weights: list[float]) -> torch.Tensor:
    pairs = zip(parts, weights, strict=True)
    total = sum((part.double() * weight for part, weight in pairs), torch.zeros(()).double())
    return total / sum(weights)


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other.double()).norm())


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.lists(st.floats(4, 1000), min_size=1, max_size=16), st.booleans())
def test_honest_peers_of_any_weights_get_their_weighted_mean(
    seed: int, weights: list[float], has_own: bool
) -> None:
    parts = gradients(seed, weights)
    own = 0 if has_own else None
    outcome = robust_mean(parts, weights, limits=LIMITS, own=own, own_size=1.0)
    truth = plain_mean(parts, weights)
    assert not outcome.clipped
    assert not outcome.left_out
    assert distance(outcome.mean, truth) <= 1e-6 * float(truth.norm())


def test_a_peer_with_nearly_all_samples_is_no_outlier() -> None:
    weights = [990.0, 4.0, 4.0, 4.0]
    parts = gradients(1, weights)
    outcome = robust_mean(parts, weights, limits=LIMITS, own=1, own_size=1.0)
    assert not outcome.clipped
    assert distance(outcome.mean, plain_mean(parts, weights)) < 1e-5


def attack(kind: str, part: torch.Tensor, scale: float) -> torch.Tensor:
    return {
        "larger": part * scale,
        "flipped": -part * scale,
        "constant": torch.full_like(part, scale),
        "one value": torch.cat([part[:-1], torch.tensor([scale])]),
    }[kind]


@settings(max_examples=200, deadline=None)
@given(
    SEEDS,
    st.sampled_from(["larger", "flipped", "constant", "one value"]),
    st.floats(1, 1e14),
    st.floats(0, 1e9),
    st.integers(0, 7),
)
def test_one_of_eight_moves_the_average_by_less_than_the_radius(
    seed: int, kind: str, scale: float, weight: float, place: int
) -> None:
    weights = [100.0] * 8
    parts = gradients(seed, weights)
    honest = [part for i, part in enumerate(parts) if i != place]
    parts[place], weights[place] = attack(kind, parts[place], scale), weight
    own = (place + 1) % 8
    outcome = robust_mean(parts, weights, limits=LIMITS, own=own, own_size=1.0)
    moved = distance(outcome.mean, plain_mean(honest, [100.0] * 7))
    noise = math.sqrt(500)  # how far honest contributions are from the truth
    assert moved <= outcome.radius
    assert moved <= 4 * noise, "the radius does not grow with what is sent"


@pytest.mark.parametrize("bad", [3, 2, 1])
def test_as_long_as_most_are_honest_colluders_stay_bounded(bad: int) -> None:
    parts = gradients(3, [100.0] * 7)
    for i in range(bad):
        parts[i] = torch.full_like(parts[i], 1e6)
    outcome = robust_mean(parts, [100.0] * 7, limits=LIMITS, own=6, own_size=1.0)
    assert outcome.clipped >= set(range(bad))
    honest = plain_mean(parts[bad:], [1.0] * (7 - bad))
    assert distance(outcome.mean, honest) <= 3 * math.sqrt(500) * bad


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([math.nan, math.inf, -math.inf, 1e30]), st.integers(0, 4))
def test_who_is_not_finite_is_left_out_and_nobody_else(seed: int, value: float, place: int) -> None:
    weights = [50.0, 60.0, 70.0, 80.0, 90.0]
    parts = gradients(seed, weights)
    parts[place][7] = value
    for limits in (LIMITS, Limits(1000.0, 0.1, 10.0, is_clipping=False)):
        outcome = robust_mean(parts, weights, limits=limits, own=0, own_size=1.0)
        others = [i for i in range(5) if i != place]
        truth = plain_mean([parts[i] for i in others], [weights[i] for i in others])
        assert outcome.left_out == {place}
        assert distance(outcome.mean, truth) <= 1e-5 * float(truth.norm())


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_weights_are_between_nothing_and_an_epochs_target(weight: float) -> None:
    assert 0 <= weight_plausible(weight, LIMITS) <= LIMITS.max_weight


def test_senseless_weights_are_cut() -> None:
    parts = [torch.full((4,), float(i)) for i in range(4)]
    weights = [math.nan, -5.0, 1e9, 1000.0]
    limits = Limits(1000.0, 0.1, 10.0, is_clipping=False)
    outcome = robust_mean(parts, weights, limits=limits)
    assert outcome.cut_weights == {0, 1, 2}
    assert torch.allclose(outcome.mean, torch.full((4,), 2.5))


def test_without_any_weight_all_count_the_same_and_without_values_the_mean_is_nan() -> None:
    parts = [torch.ones(3), torch.full((3,), 3.0)]
    assert torch.equal(robust_mean(parts, [0.0, 0.0], limits=LIMITS).mean, torch.full((3,), 2.0))
    nothing = robust_mean([torch.full((3,), math.nan)], [1.0], limits=LIMITS)
    assert bool(nothing.mean.isnan().all())


def test_in_a_group_of_two_the_other_is_cut_to_ones_own_size() -> None:
    own, other = gradients(5, [100.0, 100.0])
    size = float(own.norm()) / math.sqrt(500)
    honest = robust_mean([own, other], [100.0] * 2, limits=LIMITS, own=0, own_size=size)
    assert not honest.clipped
    assert distance(honest.mean, plain_mean([own, other], [1.0, 1.0])) < 1e-4
    outcome = robust_mean([own, other * 1e6], [100.0] * 2, limits=LIMITS, own=0, own_size=size)
    assert outcome.clipped == {1}
    assert float(outcome.mean.norm()) <= float(own.norm()) * (0.5 + 0.5 * 2 * 10)


def test_a_part_of_another_shape_is_left_out() -> None:
    parts = [torch.ones(4), torch.ones(4), torch.ones(1)]
    outcome = robust_mean(parts, [1.0] * 3, limits=LIMITS, own=0, own_size=1.0)
    assert outcome.left_out == {2}
    assert torch.equal(outcome.mean, torch.ones(4))


def test_equal_states_stay_as_they_are_and_a_drifted_one_is_pulled_to_them() -> None:
    state = torch.randn(1000, generator=torch.Generator().manual_seed(2)) * 3
    limits = Limits(max_weight=1.0, floor=0.01, reply_ratio=0.5)
    same = robust_mean([state.clone() for _ in range(4)], [1.0] * 4, limits=limits, own=0)
    assert distance(same.mean, state) < 1e-4
    parts = [state.clone(), state.clone(), state.clone(), state * 100]
    outcome = robust_mean(parts, [1.0] * 4, limits=limits, own=3)
    assert distance(outcome.mean, state) < 0.01 * float(state.norm())
