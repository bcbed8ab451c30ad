"""The parts of a run that have a page of their own: peers, configs, events, checkpoints."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.factories import user_make
from tests.pages.scenes import DRAFT, live_make, live_peer, run_open, run_scene
from web.accounts.models import User
from web.accounts.services import service_user_get
from web.contributions.models import LedgerEntry
from web.contributions.services import entry_compensate
from web.monitoring.feed import EventLine
from web.monitoring.models import Peer, RunEvent
from web.runs.models import Checkpoint
from web.runs.services import run_config_publish

RUN = "/runs/python-docs/"


def page(client: Client, path: str = "", **headers: str) -> str:
    answer = client.get(RUN + path, headers=headers)
    assert answer.status_code == 200, path
    return answer.content.decode()


def enter(client: Client, user: User) -> None:
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")


def peer_of(user: User) -> Peer:
    return Peer.objects.get(device__user=user)


def test_a_peers_page_has_what_it_does_when_it_came_and_what_was_counted(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob], epochs=60)
    key = peer_of(bob).public_id
    entry = LedgerEntry.objects.filter(run=run, epoch=59).get()
    entry_compensate(alice, entry, -96, "twice")
    live_make(
        run, {key: live_peer(peer_of(bob), epoch=59, hardware="NVIDIA GeForce RTX 3090")},
        epoch=60, now=timezone.now(), events=[EventLine("peer.joined", "bob joined again", key)],
    )  # fmt: skip
    text = page(client, f"peers/{key}/")
    for words in ("bob · bob-box", "1 behind the swarm", "RTX 3090", "bob joined again",
                  "4,000", "(4,096 before a correction)", "in 60 epochs"):  # fmt: skip
        assert words in text, words
    older = page(client, f"peers/{key}/?before={entry.pk - 49}")
    assert ">10<" not in older
    assert ">9<" in older
    assert f'href="{RUN}peers/{key}/"' in page(client)


def test_a_peer_of_a_private_profile_shows_its_history_to_its_owner_alone(
    client: Client, alice: User
) -> None:
    eve = user_make("eve", is_profile_public=False)
    run_scene(alice, [eve])
    key = peer_of(eve).public_id
    text = page(client, f"peers/{key}/")
    assert "keeps their profile private" in text
    assert "eve" not in text.replace("every", "").replace("never", "").replace("level", "")
    assert "Confirmed" not in text
    enter(client, eve)
    assert "Confirmed" in page(client, f"peers/{key}/")


def test_a_peer_that_nobody_claims_has_a_page_without_history(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob])
    stranger = live_peer(peer_of(bob), name="unverified peer", device="", verified=False, epoch=30)
    live_make(run, {"x123": stranger}, epoch=30, now=timezone.now())
    text = page(client, "peers/x123/")
    assert "unverified peer" in text
    assert "nothing of it is kept" in text
    assert client.get(f"{RUN}peers/x999/").status_code == 404


def test_the_sites_own_machine_is_called_so(client: Client, alice: User) -> None:
    run_scene(alice, [service_user_get("beeyard")])
    assert "This site · beeyard-box" in page(client, f"peers/{Peer.objects.get().public_id}/")


def test_peers_are_filtered_by_the_address_without_a_script(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob, user_make("carol")])
    rows = {
        "k1": live_peer(Peer.objects.all()[0], name="bob", hardware="cpu", epoch=30),
        "k2": live_peer(Peer.objects.all()[1], name="carol", hardware="Tesla T4", epoch=30),
    }
    live_make(run, rows, epoch=30, now=timezone.now())
    text = page(client, "?peer-class=T4&range=1h")
    assert 'data-key="k2"' in text
    assert 'data-key="k1"' not in text
    assert "1 of 2" in text
    assert '<option value="T4" selected>' in text
    assert '<input type="hidden" name="range" value="1h">' in text
    assert "No peer is like that" in page(client, "?peer=nobody")
    bubbles = page(client, "?view=bubbles&sort=name")
    assert 'data-size="6"' in bubbles
    assert 'aria-label="bob · bob-box: 40 samples/s, Training"' in bubbles


def test_of_a_large_swarm_the_page_carries_two_hundred_rows_and_no_more(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob])
    peer = peer_of(bob)
    rows = {f"k{i}": live_peer(peer, name=f"bee{i}", epoch=30) for i in range(2000)}
    live_make(run, rows, epoch=30, now=timezone.now())
    text = page(client)
    assert text.count("<tr data-key=") == 200
    assert "The first 200 of 2,000" in text
    assert '"is_partial": true' in text
    assert len(text) < 400_000
    assert text.count("<option") < 60


def test_any_two_versions_of_a_config_are_compared(client: Client, alice: User) -> None:
    run = run_open(alice)
    for size in (512, 1024, 2048):
        run_config_publish(alice, run, DRAFT | {"swarm": {"target_batch_size": size}})
    assert "Version 3 → version 4" in page(client, "config/")
    part = page(client, "config/?against=1", **{"HX-Request": "true"})
    assert "<html" not in part
    assert "4096" in part
    assert "2048" in part
    whole = page(client, "config/?version=3&against=2")
    assert "Version 2 → version 3" in whole
    assert "version 4</a> is the newest" in whole.replace(
        " is the newest</a>", "</a> is the newest"
    )
    assert "no earlier version" in page(client, "config/?version=1")
    for query in ("version=9", "against=x", "version=-1", "against=99999999999999999999"):
        assert client.get(f"{RUN}config/?{query}").status_code == 404, query


def test_a_run_without_config_has_no_page_of_configs(client: Client, alice: User) -> None:
    from web.runs.services import run_create

    run_create(alice, slug="python-docs", title="Python docs", summary="")
    enter(client, alice)
    assert client.get(f"{RUN}config/").status_code in (404, 409)


def test_older_events_come_on_demand(client: Client, alice: User) -> None:
    run = run_open(alice)
    now = timezone.now()
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=1000 + i, at=now, kind="epoch.finished", text=f"line {i}.")
        for i in range(120)
    )
    first = page(client)
    assert first.count("event-text") == 30
    assert "line 90." in first
    assert "before=1090" in first
    more = page(client, "events/?before=1090", **{"HX-Request": "true"})
    assert "<html" not in more
    assert more.count("event-text") == 50
    assert "line 89." in more
    assert "before=1040" in more
    assert "<html" in page(client, "events/?before=1040")
    assert "Nothing older" in page(client, "events/?before=1")
    assert page(client, "events/?before=x").count("event-text") == 50


def test_all_checkpoints_are_listed_page_by_page(
    client: Client, alice: User, settings: Settings, tmp_path: Path
) -> None:
    settings.CHECKPOINTS_DIR = tmp_path
    run = run_open(alice)
    for i in range(60):
        (folder := tmp_path / run.slug / f"1-{i:08d}").mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"x")
    assert "No checkpoint here" in page(client, "checkpoints/")
    file: dict[str, Any] = {"name": "model.safetensors", "sha256": "ab" * 32, "size": 6_400_000}
    Checkpoint.objects.bulk_create(
        Checkpoint(run=run, lineage=1, epoch=i, config_version=1, manifest="x", files=[file],
                   saved_at=timezone.now() - timedelta(minutes=60 - i))
        for i in range(60)
    )  # fmt: skip
    text = page(client, "checkpoints/")
    assert text.count("model.safetensors</a>") == 50
    assert "?page=2" in text
    assert page(client, "checkpoints/?page=2").count("model.safetensors</a>") == 10
    assert page(client).count("model.safetensors</a>") == 5
    (folder / "model.safetensors").unlink()
    for text in (page(client, "checkpoints/"), page(client)):
        assert "checkpoints/59/model" not in text, "no link leads nowhere"
        assert text.count("machine, not on this site") == 1


@pytest.mark.parametrize("question", ["What runs on my machine?", "Who sees what?", "counted?"])
def test_the_page_answers_the_questions_of_trust(
    question: str, client: Client, alice: User
) -> None:
    run_open(alice)
    assert question in page(client)
