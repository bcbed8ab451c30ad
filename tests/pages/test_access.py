"""Who may see which page: one table over the four people and a visitor."""

import pytest
from django.test import Client

from tests.factories import device_make
from tests.pages.scenes import run_open, run_scene
from web.accounts.models import User
from web.runs.models import Run, RunMember
from web.runs.services import run_member_add

PEOPLE = ("visitor", "alice", "bob", "charlie", "mallory")
LOGIN = 302
TABLE = {
    "/": (200, 200, 200, 200, 403),
    "/trust/": (200, 200, 200, 200, 403),
    "/runs/python-docs/": (200, 200, 200, 200, 403),
    "/runs/python-docs/strip/": (200, 200, 200, 200, 403),
    "/runs/python-docs/board/": (200, 200, 200, 200, 403),
    "/runs/python-docs/series.csv": (200, 200, 200, 200, 403),
    "/runs/python-docs/leaderboard/": (200, 200, 200, 200, 403),
    "/runs/python-docs/join/": (200, 200, 200, 200, 403),
    "/runs/python-docs/join/waiting/": (LOGIN, 200, 200, 200, 403),
    "/runs/python-docs/why/": (LOGIN, 200, 200, 200, 403),
    "/runs/secret/why/": (LOGIN, 200, 200, 404, 403),
    "/runs/secret/": (404, 200, 200, 404, 403),
    "/runs/secret/join/": (404, 200, 200, 404, 403),
    "/runs/secret/leaderboard/": (404, 200, 200, 404, 403),
    "/runs/secret/series.csv": (404, 200, 200, 404, 403),
    "/runs/secret/join/waiting/": (LOGIN, 200, 200, 404, 403),
    "/users/bob/": (200, 200, 200, 200, 403),
    "/users/charlie/": (404, 200, 404, 200, 403),
    "/users/nobody/": (404, 404, 404, 404, 403),
    "/devices/": (LOGIN, 200, 200, 200, 403),
    "/devices/{device}/revoke/": (LOGIN, 404, 200, 404, 403),
    "/account/": (LOGIN, 200, 200, 200, 403),
    "/download/nothing.whl": (404, 404, 404, 404, 403),
    "/runs/nothing/": (404, 404, 404, 404, 403),
}


@pytest.fixture
def people(alice: User, bob: User, charlie: User, mallory: User) -> dict[str, User]:
    User.objects.filter(pk=charlie.pk).update(is_profile_public=False)
    run_scene(alice, [bob])
    secret: Run = run_open(alice, "secret", title="Secret", is_public=False)
    run_member_add(alice, secret, bob, RunMember.Part.VOLUNTEER)
    return {"alice": alice, "bob": bob, "charlie": charlie, "mallory": mallory}


@pytest.mark.parametrize("path", TABLE)
def test_each_page_opens_for_those_who_may_see_it(path: str, people: dict[str, User]) -> None:
    device, _ = device_make(people["bob"], "second")
    answers = []
    for name in PEOPLE:
        client = Client()
        if name in people:
            client.force_login(people[name], backend="django.contrib.auth.backends.ModelBackend")
        answers.append(client.get(path.format(device=device.public_id)).status_code)
    assert dict(zip(PEOPLE, answers, strict=True)) == dict(zip(PEOPLE, TABLE[path], strict=True))


def test_a_suspended_account_reads_why_and_is_logged_out(people: dict[str, User]) -> None:
    client = Client()
    client.force_login(people["mallory"], backend="django.contrib.auth.backends.ModelBackend")
    assert "spam" in client.get("/").content.decode()
    assert client.get("/").status_code == 200
