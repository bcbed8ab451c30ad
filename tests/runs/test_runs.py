"""Runs: made, moved, seen."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.runs.models import BootstrapPeer, Run, RunMember
from web.runs.selectors import (
    bootstrap_addresses,
    run_get_visible,
    run_is_organised_by,
    runs_visible,
)
from web.runs.services import (
    bootstrap_peers_mark,
    run_complete,
    run_create,
    run_member_add,
    run_transition,
)

pytestmark = pytest.mark.django_db


def code_of(call: Callable[[], object]) -> str:
    try:
        call()
    except AppError as error:
        return error.code
    return "ok"


def test_an_organiser_makes_a_run_and_moves_it_to_its_end(alice: User) -> None:
    run = run_make(alice, is_open=False)
    assert run.state == RunState.DRAFT
    for event, state in (
        ("open", RunState.OPEN),
        ("pause", RunState.PAUSED),
        ("open", RunState.OPEN),
        ("finish", RunState.FINISHING),
    ):
        run_transition(alice, run, event, "because")
        assert run.state == Run.objects.get().state == state
    assert run_complete(run).state == RunState.FINISHED
    run_transition(alice, run, "archive")
    assert run.state_reason == "archived by alice"
    moves = AuditEntry.objects.filter(code="run.state.changed").order_by("id")
    assert [entry.data["new"] for entry in moves] == [
        "open", "paused", "open", "finishing", "finished", "archived",
    ]  # fmt: skip
    assert [entry.actor_name for entry in moves] == ["alice"] * 4 + ["", "alice"]
    texts = RunEvent.objects.filter(kind="state.changed").values_list("text", flat=True)
    assert "The run was paused by alice: because" in texts


@pytest.mark.parametrize(
    ("state", "event", "code"),
    [
        (RunState.DRAFT, "pause", ErrorCode.RUN_NOT_OPEN),
        (RunState.OPEN, "archive", ErrorCode.RUN_NOT_OPEN),
        (RunState.FINISHED, "open", ErrorCode.RUN_OVER),
        (RunState.FINISHING, "complete", ErrorCode.BODY_INVALID),
        (RunState.OPEN, "explode", ErrorCode.BODY_INVALID),
    ],
)
def test_other_moves_are_refused(alice: User, state: str, event: str, code: str) -> None:
    run = run_make(alice)
    Run.objects.update(state=state)
    assert code_of(lambda: run_transition(alice, run, event)) == code
    assert Run.objects.get().state == state


def test_a_run_without_config_does_not_open(alice: User) -> None:
    run = run_create(alice, slug="bare", title="Bare", summary="")
    assert code_of(lambda: run_transition(alice, run, "open")) == ErrorCode.CONFIG_MISSING


def test_who_may_make_and_move_runs(alice: User, bob: User, charlie: User, mallory: User) -> None:
    run = run_make(alice)
    admin = user_make("root", is_superuser=True)
    second = user_make("second")
    run_member_add(alice, run, second, RunMember.Part.ORGANISER)
    User.objects.filter(username="mallory").update(is_staff=True)
    mallory.refresh_from_db()
    table: dict[str, tuple[str, str]] = {}
    for user in (alice, bob, charlie, mallory, admin, second):
        slug = f"of-{user.username}"
        made = code_of(lambda u=user, s=slug: run_create(u, slug=s, title="T", summary=""))
        Run.objects.filter(pk=run.pk).update(state=RunState.OPEN)
        moved = code_of(lambda u=user: run_transition(u, run, "pause"))
        table[user.username] = (made, moved)
    assert table == {
        "alice": ("ok", "ok"),
        "bob": ("forbidden", "forbidden"),
        "charlie": ("forbidden", "forbidden"),
        "mallory": ("forbidden", "forbidden"),
        "root": ("ok", "ok"),
        "second": ("forbidden", "ok"),
    }


@pytest.mark.parametrize("slug", ["", "Up", "a_b", "-a", "a--b", "a b", "x" * 61, "ä", "a/b"])
def test_a_bad_address_is_refused(alice: User, slug: str) -> None:
    call: Any = lambda: run_create(alice, slug=slug, title="T", summary="")  # noqa: E731
    assert code_of(call) == ErrorCode.BODY_INVALID


def test_an_address_is_given_once_and_a_title_is_needed(alice: User) -> None:
    run_make(alice)
    call: Any = lambda **more: run_create(  # noqa: E731
        alice, **{"slug": "demo", "title": "T", "summary": "", **more}
    )
    assert code_of(call) == ErrorCode.BODY_INVALID
    assert code_of(lambda: call(slug="new", title=" ")) == ErrorCode.BODY_INVALID


def test_a_private_run_is_there_for_its_members_only(
    alice: User, bob: User, charlie: User, mallory: User
) -> None:
    run = run_make(alice, is_public=False)
    run_member_add(alice, run, bob, RunMember.Part.VOLUNTEER)
    service, admin = user_make("yard", is_service=True), user_make("root", is_superuser=True)
    people: list[Any] = [alice, bob, charlie, mallory, service, admin, AnonymousUser(), None]
    seen = [code_of(lambda u=u: run_get_visible(u, "demo")) == "ok" for u in people]
    listed = [runs_visible(u).filter(pk=run.pk).exists() for u in people]
    assert seen == listed == [True, True, False, False, True, True, False, False]
    assert code_of(lambda: run_get_visible(alice, "nothing")) == ErrorCode.RUN_NOT_FOUND
    assert not run_is_organised_by(None, run)


def test_drafts_are_listed_for_their_organiser_only(alice: User, bob: User) -> None:
    run_make(alice, is_open=False)
    assert [runs_visible(user).count() for user in (alice, bob, None)] == [1, 0, 0]


def test_a_draft_is_opened_by_those_inside_only_even_if_the_run_will_be_public(
    alice: User, bob: User, charlie: User, client: Client
) -> None:
    run = run_make(alice, is_open=False)
    run_member_add(alice, run, bob, RunMember.Part.VIEWER)
    people = (alice, bob, charlie, AnonymousUser(), None)
    codes = [code_of(lambda u=u: run_get_visible(u, "demo")) for u in people]
    assert codes == ["ok", "ok", *[ErrorCode.RUN_NOT_FOUND] * 3]
    addresses = (
        "/runs/demo/",
        "/runs/demo/config/",
        "/api/v1/runs/demo/",
        "/api/v1/runs/demo/config/",
    )
    assert [client.get(address).status_code for address in addresses] == [404] * 4
    run_transition(alice, run, "open")
    assert [client.get(address).status_code for address in addresses] == [200] * 4


def test_member_parts_are_checked(alice: User, bob: User) -> None:
    run = run_make(alice)
    assert code_of(lambda: run_member_add(bob, run, bob, "organiser")) == ErrorCode.FORBIDDEN
    assert code_of(lambda: run_member_add(alice, run, bob, "king")) == ErrorCode.BODY_INVALID


def test_fresh_addresses_are_handed_out_newest_first_and_older_ones_only_in_need(
    alice: User,
) -> None:
    run, now = run_make(alice), timezone.now()
    assert bootstrap_addresses(run) == []
    bootstrap_peers_mark(run, 1, [], now)
    bootstrap_peers_mark(run, 1, ["/old/p2p/QmO"], now - timedelta(minutes=5))
    bootstrap_peers_mark(run, 1, ["/a/p2p/QmA", "/a/p2p/QmA"], now - timedelta(minutes=1))
    bootstrap_peers_mark(run, 1, ["/b/p2p/QmB", "x" * 301], now)
    bootstrap_peers_mark(run, 2, ["/other-lineage/p2p/QmC"], now)
    assert bootstrap_addresses(run, now=now) == ["/b/p2p/QmB", "/a/p2p/QmA"]
    assert bootstrap_addresses(run, "QmB", now=now) == ["/a/p2p/QmA"]
    later = now + timedelta(hours=1)
    everything = ["/b/p2p/QmB", "/a/p2p/QmA", "/old/p2p/QmO"]
    assert bootstrap_addresses(run, now=later) == everything
    bootstrap_peers_mark(run, 1, ["/b/p2p/QmB"], later)
    assert bootstrap_addresses(run, now=later) == ["/b/p2p/QmB"]
    bootstrap_peers_mark(run, 1, ["/b/p2p/QmB"], later + timedelta(days=8))
    assert BootstrapPeer.objects.count() == 1


def test_a_draft_that_is_given_up_stays_unseen(alice: User, client: Client) -> None:
    run = run_make(alice, is_open=False)
    run_transition(alice, run, "archive")
    assert client.get("/runs/demo/").status_code == 404
    assert "The demo run" not in client.get("/").text
    assert AuditEntry.objects.get(code="run.state.changed").data["is_public"] == "no"
    client.force_login(alice)
    assert client.get("/runs/demo/").status_code == 200


def test_a_run_that_was_open_is_still_seen_once_it_is_archived(alice: User, client: Client) -> None:
    run = run_make(alice)
    run_transition(alice, run, "finish")
    run_complete(run)
    run.refresh_from_db()
    if run.state != RunState.ARCHIVED:
        run_transition(alice, run, "archive")
    assert client.get("/runs/demo/").status_code == 200
