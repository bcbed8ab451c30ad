"""Who may sit at the desk: one table over the four people and a stranger."""

import pytest
from django.test import Client

from tests.factories_runs import peer_make, run_make
from web.accounts.models import User
from web.contributions.models import LedgerEntry
from web.monitoring.models import HarmUndo
from web.runs.models import Run, RunBar, RunConfigVersion, RunMember
from web.workers.models import ManagedWorker

LOGIN = 302
RUN_PAGES = (
    "/control/runs/{}/",
    "/control/runs/{}/moves/pause/",
    "/control/runs/{}/workers/",
    "/control/runs/{}/workers/trainer-1/",
    "/control/runs/{}/workers/trainer-1/now/",
    "/control/runs/{}/revocations/",
    "/control/runs/{}/people/bob/bar/",
    "/control/runs/{}/suspicions/",
    "/control/runs/{}/undo/",
    "/control/runs/{}/undo/?target=user%3Abob&from_epoch=0",
)
RUN_ACTS = (
    "/control/runs/{}/moves/pause/",
    "/control/runs/{}/workers/launch/",
    "/control/runs/{}/workers/trainer-1/stop/",
    "/control/runs/{}/workers/trainer-1/start/",
    "/control/runs/{}/people/charlie/bar/",
    "/control/runs/{}/people/charlie/unbar/",
    "/control/runs/{}/undo/",
)
STAFF_PAGES = ("/control/people/", "/control/people/bob/ban/", "/control/audit/")
STAFF_ACTS = ("/control/people/bob/ban/", "/control/people/bob/unban/")


@pytest.fixture
def runs(alice: User, bob: User) -> dict[str, Run]:
    made = {
        "open": run_make(alice, "open"),
        "hidden": run_make(alice, "hidden", is_public=False),
    }
    for run in made.values():
        ManagedWorker.objects.create(run=run, kind="trainer", name="trainer-1")
        peer_make(run, bob)
    return made


def client_of(name: str, people: dict[str, User]) -> Client:
    client = Client()
    if name in people:
        client.force_login(people[name])
    return client


@pytest.fixture
def people(alice: User, bob: User, charlie: User, mallory: User) -> dict[str, User]:
    return {user.username: user for user in (alice, bob, charlie, mallory)}


@pytest.mark.parametrize(
    ("name", "of_open", "of_hidden", "of_staff"),
    [
        ("alice", 200, 200, 200),
        ("bob", 403, 404, 403),
        ("charlie", 403, 404, 403),
        ("mallory", 403, 403, 403),
        ("nobody", LOGIN, LOGIN, LOGIN),
    ],
)
def test_who_may_see_and_do_what(
    runs: dict[str, Run],
    people: dict[str, User],
    name: str,
    of_open: int,
    of_hidden: int,
    of_staff: int,
) -> None:
    for slug, code in (("open", of_open), ("hidden", of_hidden)):
        for page in RUN_PAGES:
            assert client_of(name, people).get(page.format(slug)).status_code == code, page
    for page in STAFF_PAGES:
        assert client_of(name, people).get(page).status_code == of_staff, page
    if name == "alice":
        return

    def rows() -> list[object]:
        kept = (Run, ManagedWorker, RunBar, HarmUndo, RunConfigVersion, LedgerEntry)
        return [list(model.objects.values()) for model in kept]

    before = rows()
    harm = {"target": "user:bob", "from_epoch": 0, "action": "bar", "is_meant": "on"}
    for slug, code in (("open", of_open), ("hidden", of_hidden)):
        for act in RUN_ACTS:
            answer = client_of(name, people).post(
                act.format(slug), {"count": 1, "reason": "x", **harm}
            )
            assert answer.status_code == code, act
    for act in STAFF_ACTS:
        assert client_of(name, people).post(act, {"reason": "x"}).status_code == of_staff, act
    assert rows() == before
    assert not User.objects.get(username="bob").is_banned


def test_an_organiser_without_staff_rights_controls_that_run_only(
    runs: dict[str, Run], bob: User
) -> None:
    RunMember.objects.create(run=runs["hidden"], user=bob, part=RunMember.Part.ORGANISER)
    client = Client()
    client.force_login(bob)
    page = client.get("/control/")
    assert page.status_code == 200
    assert "The hidden run" in page.text
    assert "The open run" not in page.text
    assert client.get("/control/runs/hidden/").status_code == 200
    assert client.get("/control/runs/open/").status_code == 403
    assert client.get("/control/people/").status_code == 403


def test_somebody_without_a_run_has_no_desk(runs: dict[str, Run], charlie: User) -> None:
    client = Client()
    client.force_login(charlie)
    assert client.get("/control/").status_code == 403
    assert Client().get("/control/").status_code == LOGIN


def test_staff_sees_runs_of_others_without_moving_them(runs: dict[str, Run], charlie: User) -> None:
    charlie.is_staff = True
    charlie.save()
    client = Client()
    client.force_login(charlie)
    page = client.get("/control/runs/hidden/").text
    assert "/moves/" not in page
    for act in ("moves/pause/", "people/bob/bar/", "people/bob/unbar/", "undo/"):
        answer = client.post(f"/control/runs/hidden/{act}", {"reason": "x"})
        assert answer.status_code == 403, act
    assert client.get("/control/runs/hidden/undo/").status_code == 403
    assert "undo/" not in page
    assert "/bar/" not in page
    assert Run.objects.get(slug="hidden").state == "open"


def test_an_unknown_run_or_worker_is_not_found(alice: User, runs: dict[str, Run]) -> None:
    client = Client()
    client.force_login(alice)
    for path in (
        "runs/nothing/", "runs/open/workers/nothing/", "people/nothing/ban/",
        "runs/open/people/nothing/bar/", "runs/open/undo/nothing/", "runs/open/undo/nothing/now/",
    ):  # fmt: skip
        assert client.get(f"/control/{path}").status_code == 404, path
