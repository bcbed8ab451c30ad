"""The page of roles, and what each role is offered on the desk."""

import pytest
from django.test import Client

from tests.factories import user_make
from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.runs.models import Run, RunMember
from web.workers.models import ManagedWorker

Part = RunMember.Part
PAGE = "/control/runs/demo/roles/"
OFFERS = ("/moves/pause/", "/workers/launch/", "/undo/", "/bar/", "/roles/")
"""What the desk of a run links to, the last for everybody."""


@pytest.fixture
def run(alice: User, charlie: User) -> Run:
    run = run_make(alice)
    ManagedWorker.objects.create(run=run, kind="trainer", name="trainer-1")
    snapshot_take(swarm_make(run, 1, users=[charlie]))
    return run


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_role_is_given_and_taken_with_its_effect_said(run: Run, alice: User, bob: User) -> None:
    desk = client_of(alice)
    assert "What each role may do" in desk.get(PAGE).text
    body = {"username": "bob", "part": "moderator", "reason": "helps"}
    assert "bob is moderator" in desk.post(f"{PAGE}give/", body, follow=True).text
    bobs = client_of(bob)
    assert bobs.get("/control/runs/demo/").status_code == 200
    assert 'href="/control/"' in bobs.get("/").text, "the way to the desk is shown"
    assert f"{PAGE}give/" not in bobs.get(PAGE).text
    assert "will have no role" in desk.get(f"{PAGE}bob/take/").text
    assert desk.post(f"{PAGE}bob/take/", {"reason": ""}).status_code == 200
    assert RunMember.objects.filter(user=bob).exists(), "a reason is needed"
    desk.post(f"{PAGE}bob/take/", {"reason": "left"})
    assert bobs.get("/control/runs/demo/").status_code == 403
    assert 'href="/control/"' not in bobs.get("/").text
    assert desk.get(f"{PAGE}bob/take/").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "nobody-at-all", "part": "viewer"}, 200),
        ({"username": "bob", "part": "king"}, 200),
        ({}, 200),
        ({"username": "alice", "part": "viewer"}, 422),
    ],
)
def test_a_role_for_nobody_or_of_no_kind_is_refused(
    run: Run, alice: User, bob: User, body: dict[str, str], status: int
) -> None:
    assert client_of(alice).post(f"{PAGE}give/", body).status_code == status
    assert not RunMember.objects.filter(user=bob).exists()


@pytest.mark.parametrize(
    ("part", "offered"),
    [
        (Part.ORGANISER, "xxxxx"),
        (Part.MODERATOR, "...xx"),
        (Part.VIEWER, "....x"),
    ],
)
def test_the_desk_offers_what_the_role_may_do(run: Run, bob: User, part: str, offered: str) -> None:
    RunMember.objects.create(run=run, user=bob, part=part)
    page = client_of(bob).get("/control/runs/demo/").text
    assert "".join("x" if offer in page else "." for offer in OFFERS) == offered


def test_an_organiser_who_leaves_is_led_away_from_the_desk(
    run: Run, alice: User, bob: User
) -> None:
    RunMember.objects.create(run=run, user=bob, part=Part.ORGANISER)
    answer = client_of(bob).post(f"{PAGE}bob/take/", {"reason": "done"}, follow=True)
    assert answer.status_code == 200
    assert "no role in The demo run any more" in answer.text


def test_a_name_that_nobody_has_is_said_at_its_field_and_kept(run: Run, alice: User) -> None:
    page = client_of(alice).post(f"{PAGE}give/", {"username": "bobb", "part": "viewer"}).text
    assert "Nobody here has this name" in page
    assert 'value="bobb"' in page


def test_volunteers_are_listed_and_can_be_removed(run: Run, alice: User, bob: User) -> None:
    RunMember.objects.create(run=run, user=bob, part=Part.VOLUNTEER)
    page = client_of(alice).get(PAGE).text
    assert "Volunteers who were let in" in page
    assert f"{PAGE}bob/take/" in page


def test_the_case_of_a_name_does_not_matter(run: Run, alice: User, bob: User) -> None:
    client_of(alice).post(f"{PAGE}give/", {"username": "Bob", "part": "viewer"})
    assert RunMember.objects.get(run=run, user=bob).part == Part.VIEWER


def test_a_name_that_could_be_two_peoples_is_nobodys(run: Run, alice: User, bob: User) -> None:
    user_make("BOB")
    client_of(alice).post(f"{PAGE}give/", {"username": "Bob", "part": "viewer"})
    assert not RunMember.objects.filter(run=run, user__username__iexact="bob").exists()
    client_of(alice).post(f"{PAGE}give/", {"username": "BOB", "part": "viewer"})
    assert RunMember.objects.get(run=run, user__username="BOB").part == Part.VIEWER
