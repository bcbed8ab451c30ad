"""The desk's table of peers is sorted by what is in no column of the database, too."""

import re
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    observation_make,
    peer_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from web.accounts.models import User
from web.contributions.models import Suspicion
from web.contributions.standing import Standing
from web.control.peersort import trust_key

PAGE = "/control/runs/demo/peers/"
RATES = {"machine 0": 5.0, "machine 1": 90.0, "machine 2": 30.0}
LAGS = {"machine 0": 2, "machine 1": 0, "machine 2": 3}


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    """Return three machines of bob's, one of them held; the coordinator has no live figures."""
    swarm = swarm_make(run_make(alice), 3, users=[bob])
    now = timezone.now()
    seen = [
        observation_make(v, now, samples_per_second=RATES[name], epoch=6 - LAGS[name])
        for v, name in zip(swarm.volunteers, RATES, strict=True)
    ]
    snapshot_take(swarm, now, epoch=6, peers=tuple(seen))
    held = swarm.volunteers[1].device
    Suspicion.objects.create(run=swarm.run, device=held, kind="quarantine", at=now)
    return swarm


@pytest.fixture
def desk(client: Client, alice: User, swarm: Swarm) -> Client:
    client.force_login(alice)
    return client


def names(desk: Client, query: str) -> list[str]:
    return [row["peer"].device.name for row in desk.get(f"{PAGE}?{query}").context["rows"]]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("rate", ["machine 0", "machine 2", "machine 1", "coordinator"]),
        ("-rate", ["machine 1", "machine 2", "machine 0", "coordinator"]),
        ("behind", ["machine 1", "machine 0", "machine 2", "coordinator"]),
        ("-behind", ["machine 2", "machine 0", "machine 1", "coordinator"]),
        ("trust", ["machine 1", "machine 2", "machine 0", "coordinator"]),
        ("-trust", ["machine 2", "machine 0", "coordinator", "machine 1"]),
    ],
)
def test_peers_are_sorted_by_live_figures_and_by_trust(
    desk: Client, sort: str, order: list[str]
) -> None:
    assert names(desk, f"sort={sort}") == order
    assert names(desk, f"sort={sort}&q=machine") == [n for n in order if n != "coordinator"]


def test_the_heads_are_links_that_say_how_the_table_is_sorted(desk: Client) -> None:
    text = desk.get(f"{PAGE}?q=machine&sort=-rate&page=1").text
    assert 'aria-sort="descending"><a href="?q=machine&amp;sort=rate" aria-current="true">' in text
    assert "Samples/s ↓" in text
    assert 'href="?q=machine&amp;sort=-behind"' in text, "whoever asks looks for the last ones"
    assert len(re.findall("aria-sort", text)) == 1
    assert '<input type="hidden" name="sort" value="-rate">' in text, "a search keeps the order"
    assert 'name="sort"' not in desk.get(PAGE).text


def test_the_pager_keeps_the_sort_and_no_peer_is_missing_or_twice(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    for number in range(60):
        peer_make(swarm.run, bob, f"more {number}")
    first = desk.get(f"{PAGE}?sort=-rate")
    assert 'href="?sort=-rate&amp;page=2"' in first.text
    found = names(desk, "sort=-rate") + names(desk, "sort=-rate&page=2")
    assert found[:3] == ["machine 1", "machine 2", "machine 0"]
    assert len(found) == len(set(found)) == 64


@pytest.mark.parametrize("more", [0, 60])
def test_each_sort_costs_as_many_queries_as_are_pinned(
    desk: Client, swarm: Swarm, bob: User, more: int
) -> None:
    for number in range(more):
        peer_make(swarm.run, bob, f"more {number}")
    found = {}
    for sort in ("-pass", "-seen", "-rate", "-behind", "trust"):
        desk.get(PAGE)
        with CaptureQueriesContext(connection) as context:
            assert desk.get(f"{PAGE}?sort={sort}").status_code == 200
        found[sort] = len(context)
    assert found == {"-pass": 17, "-seen": 17, "-rate": 17, "-behind": 17, "trust": 19}


def test_a_machine_that_is_held_is_trusted_least_and_a_proven_one_most() -> None:
    rising = [
        Standing(confirmed=100, open=1),
        Standing(confirmed=100, upheld=1),
        Standing(),
        Standing(confirmed=19),
        Standing(confirmed=40, rejected=2),
        Standing(confirmed=40),
        Standing(confirmed=100),
    ]
    assert all(trust_key(low) < trust_key(high) for low, high in pairwise(rising))
