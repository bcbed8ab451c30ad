"""Thinning keeps extremes."""

from hypothesis import given
from hypothesis import strategies as st

from web.monitoring.rollup import Bucket, buckets_unfold, columns_round, rows_keep

values = st.none() | st.floats(-1e6, 1e6)
Row = tuple[float | None, ...]
rows = st.lists(st.tuples(values, values), max_size=60)
METRICS = (lambda row: row[0], lambda row: row[1])


@given(rows)
def test_kept_rows_hold_every_extreme_in_order(
    rows: list[Row],
) -> None:
    numbered = [(*row, i) for i, row in enumerate(rows)]
    kept = rows_keep(numbered, METRICS)
    assert [row[2] for row in kept] == sorted(row[2] for row in kept)
    assert len(kept) <= 5
    assert kept[-1:] == numbered[-1:]
    for metric in METRICS:
        known = [v for row in numbered if (v := metric(row)) is not None]
        kept_values = [v for row in kept if (v := metric(row)) is not None]
        if known:
            assert (min(kept_values), max(kept_values)) == (min(known), max(known))


@given(rows, st.integers(1, 10))
def test_thinning_twice_keeps_the_extremes_of_thinning_once(rows: list[Row], size: int) -> None:
    numbered = [(*row, i) for i, row in enumerate(rows)]
    pieces = [numbered[i : i + size] for i in range(0, len(numbered), size)]
    twice = rows_keep([row for piece in pieces for row in rows_keep(piece, METRICS)], METRICS)
    once = rows_keep(numbered, METRICS)
    for metric in METRICS:
        assert {metric(row) for row in once} <= {metric(row) for row in twice} | {None} or (
            _span(once, metric) == _span(twice, metric)
        )


def _span(rows: list[Row], metric: object) -> tuple[float, float] | None:
    known = [v for row in rows if (v := metric(row)) is not None]  # type: ignore[operator]
    return (min(known), max(known)) if known else None


@given(st.lists(st.none() | st.tuples(st.floats(-9, 9), st.floats(0, 9)), max_size=20))
def test_unfolded_buckets_show_both_extremes(pairs: list[tuple[float, float] | None]) -> None:
    extremes = [(None, None) if p is None else (p[0], p[0] + p[1]) for p in pairs]
    buckets = [Bucket(i, i + 0.5, {"loss": pair}) for i, pair in enumerate(extremes)]
    columns = buckets_unfold(buckets, ["loss"])
    assert columns["x"] == [x for i in range(len(pairs)) for x in (i, i + 0.5)]
    for i, pair in enumerate(extremes):
        assert set(columns["loss"][2 * i : 2 * i + 2]) == set(pair)


def test_a_falling_curve_is_drawn_falling() -> None:
    buckets = [Bucket(i, i + 0.5, {"loss": (9.0 - i, 9.9 - i)}) for i in range(4)]
    loss = buckets_unfold(buckets, ["loss"])["loss"]
    assert loss[2:] == sorted(loss[2:], reverse=True)


@given(st.lists(st.none() | st.integers(0, 2**53) | st.floats(-1e9, 1e9), max_size=30))
def test_rounded_columns_stay_close_short_and_whole(column: list[float | None]) -> None:
    (rounded,) = columns_round({"loss": column}).values()
    for before, after in zip(column, rounded, strict=True):
        if before is None or isinstance(before, int):
            assert after == before
        else:
            assert abs(after - before) <= 1e-5 * abs(before)
            assert len(repr(after)) <= 13


def test_instants_keep_their_hundredths() -> None:
    assert columns_round({"t": [1772323200.123456, 1772323200.0]}) == {
        "t": [1772323200.12, 1772323200]
    }
