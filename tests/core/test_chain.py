"""The chain of audit entries: whatever was changed, taken out or moved is found. Pure."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from web.core.chain import START, Link, content_of, first_break, link_hash, plain

NOW = datetime(2026, 12, 2, 12, 0, 0, 123456, UTC)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
)
acts = st.fixed_dictionaries(
    {
        "actor_id": st.none() | st.integers(1, 50),
        "actor_name": st.text(max_size=10),
        "code": st.text(min_size=1, max_size=10),
        "target": st.text(max_size=10),
        "run": st.text(max_size=5),
        "data": st.dictionaries(st.text(), values, max_size=3).map(plain),
    }
)
chains = st.lists(acts, min_size=1, max_size=8).map(lambda items: chain_make(items))


def chain_make(items: list[dict[str, Any]]) -> list[Link]:
    links: list[Link] = []
    previous = START
    for seq, item in enumerate(items, start=1):
        content = content_of(seq=seq, at=NOW + timedelta(seconds=seq), **item)
        links.append(Link(seq, previous, link_hash(previous, content), content))
        previous = links[-1].hash
    return links


def end_of(links: list[Link]) -> tuple[int, str]:
    return links[-1].seq, links[-1].hash


@given(chains)
def test_a_chain_as_it_was_written_holds(links: list[Link]) -> None:
    assert first_break(
        links, head=end_of(links), known={link.seq: link.hash for link in links}
    ) is (None)


@given(chains, st.data())
def test_any_edit_is_found_at_its_place(links: list[Link], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(links) - 1))
    name = data.draw(st.sampled_from(sorted(links[place].content)))
    changed = {**links[place].content, name: [links[place].content[name], "changed"]}
    broken = first_break(
        [*links[:place], replace(links[place], content=changed), *links[place + 1 :]]
    )
    assert broken is not None
    assert (broken.seq, broken.text) == (place + 1, f"entry {place + 1} was changed")


@given(chains, st.data())
def test_an_edit_with_a_new_hash_is_found_at_the_next_entry_or_the_end(
    links: list[Link], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(links) - 1))
    changed = {**links[place].content, "actor_name": "somebody else entirely"}
    forged = replace(links[place], content=changed, hash=link_hash(links[place].previous, changed))
    broken = first_break([*links[:place], forged, *links[place + 1 :]], head=end_of(links))
    assert broken is not None
    assert broken.seq == place + 2


@given(chains, st.data())
def test_any_deletion_is_found(links: list[Link], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(links) - 1))
    broken = first_break(links[:place] + links[place + 1 :], head=end_of(links))
    assert broken is not None
    assert broken.seq == place + 1


@given(chains.filter(lambda links: len(links) > 1), st.data())
def test_any_other_order_is_found(links: list[Link], data: st.DataObject) -> None:
    order = data.draw(st.permutations(links))
    first = next((i for i, link in enumerate(order) if link.seq != i + 1), None)
    broken = first_break(order, head=end_of(links))
    assert (broken.seq if broken else None) == (None if first is None else first + 1)


@given(chains, st.data())
def test_a_chain_that_was_written_anew_differs_from_what_earlier_checks_saw(
    links: list[Link], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(links) - 1))
    items = [{k: v for k, v in link.content.items() if k not in ("seq", "at")} for link in links]
    items[place]["code"] = f"{items[place]['code']}!"
    forged = chain_make(items)
    assert first_break(forged, head=end_of(forged)) is None, "by itself it looks well"
    broken = first_break(forged, head=end_of(forged), known=dict([end_of(links)]))
    assert broken is not None
    assert "earlier check" in broken.text


@given(values)
def test_plain_values_survive_a_database_and_stay_as_they_are(value: Any) -> None:
    once = plain(value)
    kept = json.loads(json.dumps(once, allow_nan=False))
    assert kept == once
    assert plain(once) == once
    assert "\\u0000" not in json.dumps(once)


def test_an_instant_is_hashed_alike_in_every_time_zone() -> None:
    act: dict[str, Any] = {"actor_id": 1, "actor_name": "alice", "code": "x", "target": "y"}
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    here = content_of(seq=1, at=NOW, run="", data={}, **act)
    assert here == content_of(seq=1, at=east, run="", data={}, **act)
