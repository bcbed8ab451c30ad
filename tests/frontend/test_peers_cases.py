"""The server searches, filters, sorts and sizes peers as the browser does: one table for both."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.http import QueryDict

from web.monitoring.hardware import hardware_class
from web.pages.peersview import (
    bubble_size,
    columns_of,
    options_of,
    peer_rows,
    peers_query,
    rows_all,
)

CASES: dict[str, Any] = json.loads(Path(__file__).with_name("peer_cases.json").read_text())


@pytest.mark.parametrize(("device", "name"), CASES["classes"])
def test_a_machine_has_the_class_that_the_table_says(device: str, name: str) -> None:
    assert hardware_class(device) == name


@pytest.mark.parametrize(("text", "keys"), CASES["queries"])
def test_an_address_gives_the_peers_that_the_table_says(text: str, keys: list[str]) -> None:
    query = peers_query(QueryDict(text))
    assert [row["key"] for row in peer_rows(rows_all(CASES["state"]), query)] == keys


@pytest.mark.parametrize(("speed", "fastest", "size"), CASES["bubbles"])
def test_a_bubble_has_the_size_that_the_table_says(speed: float, fastest: float, size: int) -> None:
    assert bubble_size(speed, fastest) == size


def test_a_chosen_value_stays_among_the_choices_when_its_last_peer_has_left() -> None:
    query = peers_query(QueryDict("peer-reach=gone"))
    options = {item["name"]: item for item in options_of(rows_all(CASES["state"]), query)}
    assert options["reach"]["values"] == ["client", "direct", "gone", "relayed"]
    assert options["reach"]["chosen"] == "gone"
    assert options["version"]["values"] == ["0.1.0", "0.2.0", "unknown"]


def test_a_column_is_first_sorted_as_is_useful_then_the_other_way_round() -> None:
    columns = {column.name: column for column in columns_of(peers_query(QueryDict("sort=-lag")))}
    assert columns["lag"].direction == "descending"
    assert (columns["lag"].next_sort, columns["name"].next_sort) == ("lag", "name")
    assert columns["seen_at"].next_sort == "-seen_at"
