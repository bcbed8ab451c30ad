"""The peers of a run as the address asks for them: searched, filtered, sorted. Pure.

static/js/peerquery.js does the same; one table of cases tests both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Final

from django.http import QueryDict

from web.monitoring.hardware import UNKNOWN, hardware_class

MAX_ROWS: Final = 200
"""More than these are not written into the page; the browser gets them with the live state."""
FILTERS: Final = ("role", "class", "version", "reach")
COLUMNS: Final = (
    ("name", "Name"), ("state", "State"), ("role", "Role"), ("reach", "Reach"),
    ("class", "Hardware"), ("version", "Version"), ("samples_per_second", "Samples/s"),
    ("lag", "Lag"), ("seen_at", "Seen"),
)  # fmt: skip
NUMBERS: Final = frozenset({"samples_per_second", "lag", "seen_at"})
BUBBLE_SIZES: Final = 6
_DEFAULT_SORT: Final = "-samples_per_second"
_MAX_WORDS: Final = 80

Row = dict[str, Any]


@dataclass(frozen=True)
class PeersQuery:
    """What the address asks for; empty values ask for nothing."""

    words: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    sort: str = _DEFAULT_SORT
    is_bubbles: bool = False

    @property
    def chosen(self) -> dict[str, str]:
        return dict(self.filters)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.words or self.filters)


@dataclass(frozen=True)
class Column:
    """A head of the table: what a click on it sorts by, and how it is sorted now."""

    name: str
    title: str
    next_sort: str
    direction: str
    """``ascending``, ``descending`` or empty."""
    is_number: bool


def peers_query(params: QueryDict) -> PeersQuery:
    """Return what an address asks for; what it asks that there is not, is ignored."""
    chosen = tuple(
        (name, value[:_MAX_WORDS]) for name in FILTERS if (value := params.get(f"peer-{name}"))
    )
    sort = params.get("sort", _DEFAULT_SORT)
    known = {name for name, _ in COLUMNS}
    return PeersQuery(
        words=params.get("peer", "")[:_MAX_WORDS],
        filters=chosen,
        sort=sort if sort.removeprefix("-") in known else _DEFAULT_SORT,
        is_bubbles=params.get("view") == "bubbles",
    )


def peer_rows(every: Iterable[Row], query: PeersQuery | None = None) -> list[Row]:
    """Return the rows to show of all that :func:`rows_all` found, in order."""
    query = query or PeersQuery()
    words = " ".join(query.words.lower().split())
    chosen = query.chosen
    rows = [row for row in every if _is_wanted(row, words, chosen)]
    name = query.sort.removeprefix("-")
    rows.sort(key=lambda row: (str(row["name"]), row["key"]))
    rows.sort(key=lambda row: _value(row, name), reverse=query.sort.startswith("-"))
    return rows


def rows_all(state: Mapping[str, Any]) -> list[Row]:
    """Return a row of every peer but the coordinator's, with its lag and class of hardware."""
    return [
        {
            **peer,
            "key": key,
            "lag": max(0, state["epoch"] - peer["epoch"]),
            "class": hardware_class(peer["hardware"]),
        }
        for key, peer in state["peers"].items()
        if peer["role"] != "coordinator"
    ]


def options_of(rows: Iterable[Row], query: PeersQuery) -> list[dict[str, Any]]:
    """Return each filter with what can be chosen: what there is, and what is chosen already."""
    found: dict[str, set[str]] = {name: set() for name in FILTERS}
    for row in rows:
        for name in FILTERS:
            found[name].add(str(row[name] or UNKNOWN))
    chosen = query.chosen
    return [
        {
            "name": name,
            "chosen": chosen.get(name, ""),
            "values": sorted(found[name] | ({chosen[name]} if name in chosen else set())),
        }
        for name in FILTERS
    ]


def columns_of(query: PeersQuery) -> list[Column]:
    """Return the heads of the table."""
    by, is_down = query.sort.removeprefix("-"), query.sort.startswith("-")
    columns = []
    for name, title in COLUMNS:
        is_number = name in NUMBERS
        is_here = name == by
        next_sort = name if (is_here and is_down) or (not is_here and not is_number) else f"-{name}"
        direction = ("descending" if is_down else "ascending") if is_here else ""
        columns.append(Column(name, title, next_sort, direction, is_number))
    return columns


def bubble_size(speed: float, fastest: float) -> int:
    """Return how large a bubble is, from 1 to 6: its area goes with the speed."""
    if fastest <= 0 or speed <= 0:
        return 1
    return max(1, min(BUBBLE_SIZES, ceil(BUBBLE_SIZES * sqrt(speed / fastest))))


def _is_wanted(row: Row, words: str, chosen: Mapping[str, str]) -> bool:
    if any(str(row[name] or UNKNOWN) != value for name, value in chosen.items()):
        return False
    return not words or words in f"{row['name']} {row['device']} {row['hardware']}".lower()


def _value(row: Row, name: str) -> Any:
    value = row[name]
    return value.lower() if isinstance(value, str) else value
