"""Thins out history so that extremes survive. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

T = TypeVar("T")
Value = float | int | None
Columns = dict[str, list[Any]]
"""Values by metric; the axis's are numbers, the others may be None."""


@dataclass(frozen=True)
class Bucket:
    """Neighbouring rows in one: where they lie on the axis, and each metric's extremes."""

    first: float
    last: float
    extremes: Mapping[str, tuple[Value, Value]]
    """Lowest and highest value; None: no row has one."""


def rows_keep(rows: Sequence[T], metrics: Iterable[Callable[[T], Value]]) -> list[T]:
    """Return, in order, the rows that hold the lowest or highest value of a metric, and the last.

    What is kept of a kept selection is the same: thinning by the minute and then by the hour
    keeps the extremes that thinning by the hour at once would keep.
    """
    if not rows:
        return []
    chosen = {len(rows) - 1}
    for metric in metrics:
        known = [(value, i) for i, row in enumerate(rows) if (value := metric(row)) is not None]
        if known:
            chosen |= {min(known)[1], max(known, key=lambda pair: pair[0])[1]}
    return [rows[i] for i in sorted(chosen)]


def slot_of(at: datetime, seconds: int) -> int:
    """Return the number of the slot of ``seconds`` length that an instant lies in."""
    return int(at.timestamp()) // seconds


def buckets_unfold(buckets: Sequence[Bucket], metrics: Sequence[str]) -> Columns:
    """Return two points per bucket as columns (``x`` and each metric).

    Both extremes of every metric are among the points. Which comes first follows the curve: the
    one nearer to the value before it.
    """
    columns: Columns = {"x": [], **{name: [] for name in metrics}}
    for bucket in buckets:
        columns["x"] += [bucket.first, bucket.last]
        for name in metrics:
            low, high = bucket.extremes[name]
            column = columns[name]
            before = next((v for v in reversed(column[-4:]) if v is not None), None)
            column += [high, low] if _starts_high(low, high, before) else [low, high]
    return columns


def columns_round(columns: Columns, digits: int = 6) -> Columns:
    """Return the columns with numbers as short as a chart can use: ``digits`` significant ones
    for measured values, hundredths of a second for ``t``. Whole numbers stay as they are."""
    return {
        name: [_short(value, None if name == "t" else digits) for value in column]
        for name, column in columns.items()
    }


def _short(value: Value, digits: int | None) -> Value:
    if value is None or isinstance(value, int):
        return value
    short = round(value, 2) if digits is None else float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _starts_high(low: Value, high: Value, before: Value) -> bool:
    if low is None or high is None or before is None:
        return False
    return abs(high - before) < abs(low - before)
