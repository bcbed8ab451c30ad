"""Joining, devices, account, profile, the front page, errors."""

import re
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from tests.factories import device_make, user_make
from tests.pages.scenes import peer_make, run_open, run_scene
from web.accounts.models import ApiToken, User
from web.runs.services import run_create

JOIN = "/runs/python-docs/join/"


def enter(client: Client, user: User) -> Client:
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_the_front_page_lists_runs_with_their_numbers(
    client: Client, alice: User, bob: User
) -> None:
    run_scene(alice, [bob])
    run_create(alice, slug="hidden-draft", title="Hidden draft", summary="")
    text = client.get("/").content.decode()
    assert "Python docs" in text
    assert "5.213" in text
    assert "Hidden draft" not in text
    for question in ("What runs on my machine?", "How much traffic?", "Can I stop at any time?"):
        assert question in text


def test_the_front_page_without_a_run_says_what_will_come(client: Client, db: None) -> None:
    assert "No run yet" in client.get("/").content.decode()


@pytest.mark.parametrize("num_runs", [1, 8])
def test_the_front_page_takes_as_many_queries_for_eight_runs_as_for_one(
    num_runs: int,
    client: Client,
    alice: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(num_runs):
        run_open(alice, f"run-{number}")
    with django_assert_num_queries(3):
        client.get("/")


def test_the_join_page_has_commands_of_this_site_and_waits_for_the_machine(
    client: Client, alice: User, bob: User, settings: Settings
) -> None:
    run = run_open(alice)
    text = client.get(JOIN).content.decode()
    assert f"beeyard join {settings.PUBLIC_URL}/runs/python-docs/" in text
    assert f"[train] @ {settings.PUBLIC_URL}/download/beeyard-" in text
    assert "hx-get" not in text, "a visitor has no machine to wait for"
    enter(client, bob)
    assert "Waiting for your machine" in client.get(JOIN + "waiting/").content.decode()
    peer_make(run, device_make(bob, "bobs-laptop")[0])
    assert "bobs-laptop is in the swarm" in client.get(JOIN + "waiting/").content.decode()


def test_the_trainer_can_be_downloaded_and_nothing_else(
    client: Client, db: None, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "dist").mkdir()
    (tmp_path / "secret.whl").write_bytes(b"no")
    (tmp_path / "dist" / "beeyard-0.1.0-py3-none-any.whl").write_bytes(b"wheel")
    answer = client.get("/download/beeyard-0.1.0-py3-none-any.whl")
    assert answer.content == b"wheel"
    for name in ("..%2Fsecret.whl", "beeyard-9.whl", ".whl"):
        missing = client.get(f"/download/{name}")
        assert missing.status_code == 404
    assert "The current one is" in client.get("/download/beeyard-9.whl").content.decode()


def test_a_machine_is_renamed_and_revoked_after_a_question(
    client: Client, alice: User, bob: User
) -> None:
    device, _ = device_make(bob, "old name")
    run = run_open(alice)
    peer_make(run, device)
    enter(client, bob)
    assert "Python docs" in client.get("/devices/").content.decode()
    client.post(f"/devices/{device.public_id}/rename/", {"name": "new name"})
    client.post(f"/devices/{device.public_id}/rename/", {"name": ""})
    text = client.get("/devices/").content.decode()
    assert "new name" in text
    assert "1 to 80 characters" in text
    assert "Revoke new name?" in client.get(f"/devices/{device.public_id}/revoke/").content.decode()
    device.refresh_from_db()
    assert not device.is_revoked
    client.post(f"/devices/{device.public_id}/revoke/")
    device.refresh_from_db()
    assert device.is_revoked
    assert "Revoked" in client.get("/devices/").content.decode()


def test_nobody_renames_or_revokes_the_machine_of_another(
    client: Client, bob: User, charlie: User
) -> None:
    device, _ = device_make(bob, "bobs")
    enter(client, charlie)
    for act in ("rename", "revoke"):
        answer = client.post(f"/devices/{device.public_id}/{act}/", {"name": "mine"})
        assert answer.status_code == 404
    device.refresh_from_db()
    assert device.name == "bobs"
    assert not device.is_revoked


@pytest.mark.parametrize("num_devices", [1, 9])
def test_the_devices_page_takes_as_many_queries_for_nine_as_for_one(
    num_devices: int, client: Client, bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(num_devices):
        device_make(bob, f"box-{number}")
    enter(client, bob)
    with django_assert_num_queries(7):
        client.get("/devices/")


def test_a_token_is_shown_once_and_can_be_revoked(client: Client, bob: User) -> None:
    enter(client, bob)
    answer = client.post("/account/tokens/", {"name": "my script"})
    token = ApiToken.objects.get(user=bob)
    assert token.prefix in answer.content.decode()
    assert answer.content.decode().count("by_") == 2, "the secret, and the prefix in the list"
    assert "no-store" in answer["Cache-Control"]
    assert client.get("/account/").content.decode().count("by_") == 1
    client.post(f"/account/tokens/{token.pk}/revoke/")
    token.refresh_from_db()
    assert token.revoked_at
    assert client.post("/account/tokens/", {"name": ""}).status_code == 200
    assert ApiToken.objects.filter(user=bob).count() == 1


def test_the_token_of_another_cannot_be_revoked(client: Client, bob: User, charlie: User) -> None:
    client.post("/account/tokens/", {"name": "x"})
    enter(client, bob).post("/account/tokens/", {"name": "x"})
    token = ApiToken.objects.get(user=bob)
    assert enter(Client(), charlie).post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


@pytest.mark.parametrize("path", ["/account/", "/trust/"])
def test_every_link_of_these_pages_leads_somewhere(path: str, client: Client, bob: User) -> None:
    text = enter(client, bob).get(path).text
    links = set(re.findall(r'<a\b[^>]*\bhref="(/[^"#]*)', text))
    assert len(links) > 5
    assert {link: s for link in links if (s := client.get(link).status_code) >= 400} == {}


def test_a_profile_can_be_closed(client: Client, bob: User) -> None:
    assert client.get("/users/bob/").status_code == 200
    enter(client, bob).post("/account/profile/", {})
    assert Client().get("/users/bob/").status_code == 404
    assert "only you and the organisers" in client.get("/users/bob/").content.decode()


def test_a_profile_shows_totals_of_runs_the_viewer_may_see(
    client: Client, alice: User, bob: User
) -> None:
    run = run_scene(alice, [bob])
    text = client.get("/users/bob/").content.decode()
    assert f"{4096 * 30:,}" in text
    run.is_public = False
    run.save()
    assert "Nothing counted yet" in client.get("/users/bob/").content.decode()


def test_the_leaderboard_pages_through_many(client: Client, alice: User) -> None:
    run_scene(alice, [user_make(f"bee{i:03d}") for i in range(103)], epochs=2)
    first = client.get("/runs/python-docs/leaderboard/").content.decode()
    last = client.get("/runs/python-docs/leaderboard/?page=2").content.decode()
    assert "Later ranks" in first
    assert "Earlier ranks" in last
    assert last.count('href="/users/') == 3
    assert client.get("/runs/python-docs/leaderboard/?page=-1e9").status_code == 200


def test_a_missing_page_names_the_code_and_the_way_out(client: Client, db: None) -> None:
    answer = client.get("/nothing-here/")
    assert answer.status_code == 404
    assert "not_found" in answer.content.decode()
    assert 'href="/"' in answer.content.decode()


def test_a_broken_page_says_that_it_is_our_fault(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.pages.home.runs_summaries", lambda viewer: 1 / 0)
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.content.decode()
    assert "Log in" not in answer.content.decode(), "it asks nothing of the database"


@pytest.mark.parametrize("path", ["/robots.txt", "/favicon.ico", "/trust/", "/runs/"])
def test_small_addresses_answer(path: str, client: Client, db: None) -> None:
    assert client.get(path).status_code in (200, 301)
