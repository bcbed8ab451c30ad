"""The arithmetic of contributions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import CreditState
from web.contributions.accounting import (
    Entry,
    Total,
    epoch_seconds,
    ranks_of,
    shares_of,
    total_add,
    totals_of,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
entries = st.builds(
    Entry,
    run_id=st.integers(1, 2),
    user_id=st.integers(1, 3),
    samples=st.integers(1, 9),
    seconds=st.integers(0, 99).map(float),
    state=st.sampled_from(CreditState),
    finished_at=st.integers(0, 99).map(lambda s: NOW + timedelta(seconds=s)),
    is_correction=st.booleans(),
)


@given(st.lists(entries, max_size=30), st.randoms())
def test_totals_do_not_depend_on_order_or_grouping(found: list[Entry], random: object) -> None:
    whole = totals_of(found)
    mixed = list(found)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert totals_of(mixed) == whole
    stepwise: dict[tuple[int, int], Total] = {}
    for entry in mixed:
        key = (entry.run_id, entry.user_id)
        stepwise[key] = total_add(stepwise.get(key, Total()), entry)
    assert {k: t for k, t in stepwise.items() if t != Total()} == whole


@given(st.lists(entries, max_size=30))
def test_only_confirmed_entries_count(found: list[Entry]) -> None:
    confirmed = [e for e in found if e.state is CreditState.CONFIRMED]
    assert totals_of(found) == totals_of(confirmed)
    total = sum(t.samples for t in totals_of(found).values())
    assert total == sum(e.samples for e in confirmed)


@pytest.mark.parametrize(
    ("previous", "opened", "seconds"),
    [
        (None, None, 0),
        (-20, None, 20),
        (None, -30, 30),
        (-20, -30, 20),
        (-3000, -30, 30),
        (-99999, None, 7200),
        (-20, 30, 20),
        (30, None, 0),
    ],
)
def test_an_epoch_is_as_long_as_the_swarm_worked(
    previous: int | None, opened: int | None, seconds: float
) -> None:
    def at(offset: int | None) -> datetime | None:
        return None if offset is None else NOW + timedelta(seconds=offset)

    assert epoch_seconds(NOW, at(previous), at(opened)) == seconds


@given(st.lists(st.integers(0, 9), max_size=20))
def test_ranks_count_who_has_more(samples: list[int]) -> None:
    falling = sorted(samples, reverse=True)
    expected = [1 + sum(other > number for other in falling) for number in falling]
    assert ranks_of(falling) == expected


@given(st.dictionaries(st.integers(), st.integers(0, 9), max_size=9))
def test_shares_are_parts_of_one(samples: dict[int, int]) -> None:
    shares = shares_of(samples)
    assert set(shares) == set(samples)
    assert sum(shares.values()) == pytest.approx(1.0 if any(samples.values()) else 0.0)
