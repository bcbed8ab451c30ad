"""What a report says of averaging rounds: small, fair, and the same for whoever asks."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.metrics import (
    MAX_ROUND_MEMBERS,
    MAX_ROUND_ROWS,
    MAX_ROUNDS,
    EpochSamples,
    PeerMetrics,
    RoundSeen,
)
from training.protocol.names import TYP_METRICS
from training.protocol.rounds import round_seen, rounds_that_fit

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PEER = "Qm" + "z" * 44


def group(size: int) -> list[str]:
    return [f"Qm{number:044d}" for number in range(size)]


def seen_by(own: str, members: list[str], epoch: int = 7) -> RoundSeen:
    weights: dict[str, int | None] = {member: 10 for member in members if member != own}
    return round_seen(epoch, weights, own=own, group_size=len(members))


@given(st.lists(st.integers(0, 40), max_size=40))
def test_of_many_rounds_the_newest_that_fit_are_told(sizes: list[int]) -> None:
    rounds = [
        round_seen(epoch, dict.fromkeys(group(size), 5), own=PEER, group_size=size + 1)
        for epoch, size in enumerate(sizes)
    ]
    told = rounds_that_fit(rounds)
    assert list(told) == rounds[len(rounds) - len(told) :]
    assert len(told) <= MAX_ROUNDS
    assert sum(len(item.weights) for item in told) <= MAX_ROUND_ROWS
    assert bool(told) == bool(rounds)
    assert all(item.is_whole == (item.group_size <= MAX_ROUND_MEMBERS + 1) for item in told)


def test_the_largest_report_fits_into_a_record() -> None:
    rounds = [
        round_seen(10**9 + i, dict.fromkeys(group(200), 10**9), own=PEER, group_size=200)
        for i in range(MAX_ROUNDS)
    ]
    report = PeerMetrics(
        run="a" * 60, lineage=10**6, peer_id=PEER, config_version=10**6, epoch=10**9,
        samples_accumulated=10**12, samples_total=10**12, samples_per_second=1e12 / 3,
        recent=tuple(EpochSamples(epoch=10**9 + i, samples=10**9) for i in range(32)),
        rounds=rounds_that_fit(rounds), trainer_version="v" * 40, taken_at=NOW,
    )  # fmt: skip
    lifetime = timedelta(minutes=2)
    token = sign(
        report, typ=TYP_METRICS, key=key_generate(), issuer="x", lifetime=lifetime, now=NOW
    )
    assert len(token) < 10_000


@pytest.mark.parametrize("size", [2, 13, 14, 60, 200])
def test_everybody_in_a_group_is_named_by_others(size: int) -> None:
    members = group(size)
    named = Counter(name for own in members for name in seen_by(own, members).weights)
    assert set(named) == set(members)
    assert sum(named.values()) == size * min(size - 1, MAX_ROUND_MEMBERS)


def test_the_choice_is_the_same_for_the_same_round_and_another_for_the_next() -> None:
    members = group(60)
    assert seen_by(members[0], members) == seen_by(members[0], list(reversed(members)))
    assert seen_by(members[0], members, 8).weights != seen_by(members[0], members).weights


@pytest.mark.parametrize(
    "changes",
    [
        {"group_size": 0},
        {"epoch": -1},
        {"weights": {"": 1}},
        {"weights": {"Qm" * 100: 1}},
        {"weights": {PEER: -1}},
        {"weights": {PEER: 1.5}},
        {"weights": dict.fromkeys(group(13), 1)},
    ],
)
def test_what_no_trainer_of_ours_writes_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RoundSeen.model_validate({"epoch": 1, "group_size": 2, "weights": {}} | changes)


def test_a_report_without_rounds_is_read_and_unknown_members_are_dropped() -> None:
    body = {"epoch": 1, "group_size": 2, "weights": {PEER: None}, "added_later": 1}
    assert RoundSeen.model_validate(body).weights == {PEER: None}
