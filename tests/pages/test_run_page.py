"""The page of a run: what it shows, with history and without."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import user_make
from tests.pages.scenes import DRAFT, live_make, live_peer, run_open, run_scene
from web.accounts.models import User
from web.accounts.services import service_user_get
from web.monitoring.models import Peer, RunSwarm
from web.runs.models import Run
from web.runs.services import run_config_publish, run_create, run_transition

PATH = "/runs/python-docs/"


def page(client: Client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_first_screen_has_state_counter_epoch_and_tiles(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob])
    text = page(client)
    seq = Run.objects.get(pk=run.pk).live_seq
    assert f'data-seq="{seq}"' in text
    assert ">Training<" in text
    assert f"{4096 * 30 + 500:,}" in text
    assert "Join with your machine" in text
    assert "A CPU is enough" in text
    state = json.loads(re.findall(r'id="live-state"[^>]*>(.*?)</script>', text)[0])
    assert state["seq"] == seq
    assert state["epoch"] == 30
    assert text.count('<use href="#cell"') == 108
    assert text.count('data-slot="0"') == 13 + 2, "500 of 4096 in 108 cells, legend, table"


def test_a_run_without_history_says_what_will_appear(client: Client, alice: User) -> None:
    run_open(alice)
    text = page(client)
    assert "No history yet" in text
    assert "No trainers at the moment" in text
    assert "Nobody on the board yet" in text
    assert "No checkpoint yet" in text
    assert "polyline" not in text


def test_the_state_pulses_only_while_the_swarm_is_at_work(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob])
    pulse = r'data-live="state"[^>]*data-pulse="(\w+)"'
    assert re.findall(pulse, page(client)) == ["true"]
    run_transition(alice, run, "pause")
    assert re.findall(pulse, page(client)) == ["false"]


def test_a_draft_without_config_is_shown_and_cannot_be_joined(client: Client, alice: User) -> None:
    run_create(alice, slug="python-docs", title="Python docs", summary="")
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    text = page(client)
    assert "Not open yet" in text
    assert "No config yet" in text
    assert "Join with your machine" not in text
    assert client.get(PATH + "join/").status_code == 409


@pytest.mark.parametrize(("move", "words"), [("pause", "Paused"), ("finish", "no more trainers")])
def test_a_run_that_takes_nobody_says_so(
    move: str, words: str, client: Client, alice: User
) -> None:
    run = run_open(alice)
    run_transition(alice, run, move)
    text = page(client)
    assert words in text
    assert "Join with your machine" not in text


def test_old_numbers_are_not_called_training(client: Client, alice: User, bob: User) -> None:
    run = run_scene(alice, [bob])
    long_ago = timezone.now() - timedelta(minutes=10)
    RunSwarm.objects.filter(run=run).update(received_at=long_ago)
    text = page(client)
    assert ">Unknown<" in text
    assert "averaging in" not in text


def test_a_name_from_a_stranger_stays_text(client: Client, alice: User, bob: User) -> None:
    run = run_scene(alice, [bob])
    evil = "</script><img src=x onerror=alert(1)>"
    peers = {"p1": live_peer(Peer.objects.get(run=run), name="bob", device=evil, epoch=30)}
    live_make(run, peers, epoch=30, now=timezone.now())
    text = page(client)
    assert evil not in text
    assert "<img" not in text


def test_own_machines_rank_and_row_are_marked(client: Client, alice: User, bob: User) -> None:
    run_scene(alice, [bob, user_make("carol")])
    assert "My samples" not in page(client)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    text = page(client)
    assert "My machines in this run" in text
    assert "bob-box" in text
    assert text.count('class="is-mine"') == 2, "among the peers and on the board"


def test_the_sites_own_trainers_are_a_note_and_not_ranked(client: Client, alice: User) -> None:
    run_scene(alice, [service_user_get("beeyard")])
    text = page(client)
    assert "own trainers computed" in text
    assert "managed" in text
    assert "Nobody on the board yet" in text


def test_a_volunteer_without_a_public_profile_has_no_name_and_no_link(
    client: Client, alice: User
) -> None:
    run_scene(alice, [user_make("eve", is_profile_public=False)])
    board = page(client, PATH + "leaderboard/")
    assert "a volunteer" in board
    assert "/users/" not in board


def test_the_view_of_the_charts_is_in_the_address(client: Client, alice: User, bob: User) -> None:
    run_scene(alice, [bob])
    text = page(client, PATH + "?range=1h&scale=log&x=epoch&period=7d")
    for mark in ('data-range="1h"', 'data-scale="log"', 'data-x="epoch"'):
        assert mark in text
    assert 'data-range="all"' in page(client, PATH + "?range=%3Cscript%3E&period=x")


def test_the_charts_have_a_table_and_a_csv(client: Client, alice: User, bob: User) -> None:
    run_scene(alice, [bob])
    assert "The same as a table" in page(client)
    lines = page(client, PATH + "series.csv").splitlines()
    assert lines[0] == "time,loss,samples_per_second,num_peers,epoch,samples_total"
    assert len(lines) == 1 + 30


def test_a_second_config_shows_what_changed(client: Client, alice: User) -> None:
    run = run_open(alice)
    run_config_publish(alice, run, DRAFT | {"swarm": {"target_batch_size": 512}})
    text = page(client)
    assert "Changes since version 1" in text
    assert "swarm.target_batch_size" in text


@pytest.mark.parametrize("num_people", [1, 12])
def test_a_run_page_takes_as_many_queries_for_one_peer_as_for_twelve(
    num_people: int,
    client: Client,
    alice: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run_scene(alice, [user_make(f"bee{i}") for i in range(num_people)])
    with django_assert_num_queries(RUN_PAGE_QUERIES):
        page(client)


RUN_PAGE_QUERIES = 10
