"""A country is chosen by its person, and shown in sums of at least three alone."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import device_make, user_make
from tests.factories_runs import peer_make, run_make
from web.accounts.countries import countries
from web.accounts.models import User
from web.accounts.services import user_country_set
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import Peer
from web.monitoring.selectors import run_countries
from web.runs.models import Run

PAGE = "/runs/demo/countries/"


def person(run: Run, name: str, country: str, **fields: object) -> Peer:
    user = user_make(name, country=country)
    return peer_make(run, user, **({"seen_at": timezone.now()} | fields)).peer  # type: ignore[arg-type]


def test_it_is_off_until_it_is_chosen_and_can_be_taken_back(client: Client, bob: User) -> None:
    assert bob.country == ""
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    assert (
        '<option value="" selected>Not shown</option>' in client.get("/account/").content.decode()
    )
    for country in ("FR", ""):
        assert client.post("/account/country/", {"country": country}).status_code == 302
        bob.refresh_from_db()
        assert bob.country == country
    assert client.get("/api/v1/me/").json()["country"] == ""
    entries = AuditEntry.objects.filter(code="user.country.changed")
    assert [entry.data for entry in entries.order_by("pk")] == [
        {"is_named": True},
        {"is_named": False},
    ]


@pytest.mark.parametrize("code", ["XX", "fr", "France", "F\0", "FRA"])
def test_what_is_no_country_is_refused(code: str, client: Client, bob: User) -> None:
    with pytest.raises(AppError):
        user_country_set(bob, code)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post("/account/country/", {"country": code}).status_code in (200, 400)
    bob.refresh_from_db()
    assert bob.country == ""


def test_a_country_is_named_when_three_people_share_it(client: Client, alice: User) -> None:
    run = run_make(alice)
    for i in range(2):
        person(run, f"fr{i}", "FR")
        person(run, f"none{i}", "")
    first = person(run, "de0", "DE")
    for _ in range(4):  # many machines of one person are one person
        device, _ = device_make(first.device.user)
        Peer.objects.create(
            run=run, device=device, peer_id=f"Qm{device.public_id}", role="trainer",
            key_thumbprint=device.public_id, joined_at=timezone.now(), seen_at=timezone.now(),
        )  # fmt: skip
    assert run_countries(run, timezone.now()) == []
    text = client.get(PAGE).content.decode()
    assert "France" not in text
    assert "at least 3 people" in text
    person(run, "fr2", "FR")
    assert run_countries(run, timezone.now()) == [("FR", 3)]
    text = client.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert "France" in text
    assert "3 people" in text
    assert "Germany" not in text


def test_only_people_who_take_part_in_this_run_are_counted(alice: User) -> None:
    run, other = run_make(alice), run_make(alice, "other")
    for i in range(2):
        person(run, f"jp{i}", "JP")
    person(other, "jp-elsewhere", "JP")
    person(run, "jp-old", "JP", seen_at=timezone.now() - timedelta(days=8))
    person(run, "jp-never", "JP", seen_at=None)
    gone = person(run, "jp-banned", "JP")
    User.objects.filter(pk=gone.device.user_id).update(banned_at=timezone.now())
    assert run_countries(run, timezone.now()) == []
    person(run, "jp2", "JP")
    assert run_countries(run, timezone.now()) == [("JP", 3)]


def test_no_page_or_answer_tells_the_country_of_one_person(client: Client, alice: User) -> None:
    run = run_make(alice)
    for i in range(3):
        person(run, f"is{i}", "IS")
    for path in ("/users/is0/", "/api/v1/users/is0/", "/runs/demo/", "/api/v1/runs/demo/state/",
                 "/api/v1/runs/demo/leaderboard/", "/runs/demo/leaderboard/"):  # fmt: skip
        text = client.get(path).content.decode()
        assert "Iceland" not in text, path
        assert '"IS"' not in text, path


def test_the_list_has_every_country_once_in_order() -> None:
    names = list(countries().values())
    assert len(names) == 249
    assert names == sorted(set(names))
    assert all(len(code) == 2 and code.isupper() for code in countries())
