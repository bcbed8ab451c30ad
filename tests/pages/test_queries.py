"""Each public page and list takes the same few queries, however much there is to show."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import user_make
from tests.pages.scenes import DRAFT, evaluations_make, run_scene
from web.accounts.models import User
from web.monitoring.models import Peer
from web.runs.services import run_config_publish

RUN = "/runs/python-docs/"
API = "/api/v1/runs/python-docs/"
PINNED = {
    "/": 3,
    RUN: 10,
    f"{RUN}?view=bubbles&peer=bee&sort=name&period=7d": 10,
    f"{RUN}peers/PEER/": 9,
    f"{RUN}events/": 2,
    f"{RUN}checkpoints/": 2,
    f"{RUN}countries/": 2,
    f"{RUN}config/": 4,
    f"{RUN}evaluations/": 7,
    f"{RUN}evaluations/chart/": 6,
    f"{RUN}history/evaluations.csv": 5,
    f"{RUN}board/": 3,
    f"{RUN}strip/": 3,
    f"{RUN}leaderboard/": 3,
    f"{RUN}join/": 2,
    "/users/bee0/": 2,
    "/api/v1/runs/": 3,
    API: 5,
    f"{API}state/": 5,
    f"{API}config/": 3,
    f"{API}events/": 2,
    f"{API}leaderboard/": 3,
    f"{API}contributions/": 2,
    f"{API}checkpoints/": 2,
    "/api/v1/users/bee0/contributions/": 2,
}
SIGNED_IN = {RUN: 14, f"{RUN}leaderboard/": 6, "/devices/": 7, "/account/": 4}

HISTORY = f"{RUN}history/"
KEPT = {
    HISTORY: 12,
    f"{HISTORY}part/?from=2026-01-01T00:00:00Z": 12,
    f"{HISTORY}moment/?at=2026-01-01T00:00:00Z": 3,
    f"{HISTORY}throughput.csv": 3,
    f"{HISTORY}epochs.csv": 6,
    f"{HISTORY}marks.csv": 4,
    f"{RUN}series.csv": 6,
    f"{API}series/": 4,
    f"{API}throughput/": 3,
    f"{API}marks/": 4,
    f"{API}evaluations/": 3,
    f"{API}revocations/": 2,
    f"{API}leaderboard/?format=csv": 3,
    f"{API}badge.svg": 5,
    "/api/v1/users/bee0/": 3,
    "/api/v1/users/bee0/badge.svg": 2,
}
"""The second time: what a process keeps of the swarm and of long charts is kept by then."""
KEPT_SIGNED_IN = {
    f"{RUN}why/": 12,
    f"{API}why/": 10,
    f"{RUN}join/": 6,
    "/api/v1/me/": 2,
    "/api/v1/me/devices/": 4,
}


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as context:
        assert client.get(path).status_code == 200, path
    return len(context)


def scene(alice: User, num_people: int) -> str:
    run = run_scene(alice, [user_make(f"bee{i}") for i in range(num_people)], epochs=num_people * 3)
    for number in range(num_people):
        run_config_publish(alice, run, DRAFT | {"max_epochs": 100 + number})
    evaluations_make(run, range(1, num_people * 3))
    return Peer.objects.filter(run=run).order_by("pk").first().public_id  # type: ignore[union-attr]


@pytest.mark.django_db
@pytest.mark.parametrize("num_people", [2, 9])
def test_visitors_pages_and_lists_take_as_many_queries_as_are_pinned(
    num_people: int, client: Client, alice: User
) -> None:
    peer = scene(alice, num_people)
    found = {path: queries(client, path.replace("PEER", peer)) for path in PINNED}
    assert found == PINNED
    assert max(found.values()) <= 12


@pytest.mark.django_db
@pytest.mark.parametrize("num_people", [2, 9])
def test_volunteers_pages_take_as_many_queries_as_are_pinned(
    num_people: int, client: Client, alice: User
) -> None:
    scene(alice, num_people)
    user = User.objects.get(username="bee1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert {path: queries(client, path) for path in SIGNED_IN} == SIGNED_IN


@pytest.mark.django_db
@pytest.mark.parametrize("num_people", [2, 9])
def test_charts_files_and_accounts_take_as_many_queries_as_are_pinned(
    num_people: int, client: Client, alice: User
) -> None:
    scene(alice, num_people)

    def kept(path: str) -> int:
        queries(client, path)
        return queries(client, path)

    assert {path: kept(path) for path in KEPT} == KEPT
    user = User.objects.get(username="bee1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert {path: kept(path) for path in KEPT_SIGNED_IN} == KEPT_SIGNED_IN
