"""Roles of a run: the table, who gives and takes them, and what goes with them."""

import pytest
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run, RunMember
from web.runs.roles import REFUSALS, RIGHTS, ROLE_TEXTS, Right, RunRole, rights_of
from web.runs.selectors import run_get_visible, run_organisers, run_rights, run_roles_of
from web.runs.services import (
    run_bar_add,
    run_member_add,
    run_member_remove,
    run_transition,
)

pytestmark = pytest.mark.django_db
Part = RunMember.Part


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice, is_public=False)


def code_of(call: object) -> str:
    try:
        call()  # type: ignore[operator]
    except AppError as error:
        return error.code
    return "ok"


def test_the_table_of_roles_and_rights() -> None:
    table = {
        role.value: "".join("x" if right in RIGHTS[role] else "." for right in Right)
        for role in RunRole
    }
    assert [right.value for right in Right] == [
        "look", "addresses", "workers", "moderate", "organise", "roles",
    ]  # fmt: skip
    assert table == {
        "admin": "xxxxxx", "staff": "xxx...", "organiser": "xxxxxx",
        "moderator": "xx.x..", "viewer": "x.....", "volunteer": "......",
    }  # fmt: skip
    assert set(REFUSALS) == set(Right)
    assert {role.value for role in ROLE_TEXTS} == set(Part.values)


def test_several_roles_add_up() -> None:
    both = rights_of(frozenset({RunRole.STAFF, RunRole.MODERATOR}))
    assert both == RIGHTS[RunRole.STAFF] | RIGHTS[RunRole.MODERATOR]
    assert rights_of(frozenset()) == frozenset()


def test_who_is_what(run: Run, alice: User, bob: User, charlie: User, mallory: User) -> None:
    run_member_add(alice, run, bob, Part.MODERATOR)
    RunMember.objects.create(run=run, user=mallory, part=Part.ORGANISER)
    root, dave = user_make("rooty", is_superuser=True), user_make("dave", is_staff=True)
    run_member_add(alice, run, dave, Part.VIEWER)
    away = user_make("away", is_active=False)
    RunMember.objects.create(run=run, user=away, part=Part.ORGANISER)
    found = {
        user.username: sorted(run_roles_of(user, run))
        for user in (alice, bob, charlie, mallory, root, dave, away)
    }
    assert found == {
        "alice": ["organiser", "staff"], "bob": ["moderator"], "charlie": [], "mallory": [],
        "rooty": ["admin"], "dave": ["staff", "viewer"], "away": [],
    }  # fmt: skip
    assert run_roles_of(None, run) == frozenset()


@pytest.mark.parametrize("part", [Part.MODERATOR, Part.VIEWER, Part.VOLUNTEER])
def test_only_organisers_give_and_take_roles(
    run: Run, alice: User, bob: User, charlie: User, part: str
) -> None:
    run_member_add(alice, run, bob, part)
    staff = user_make("dave", is_staff=True)
    for actor in (bob, charlie, staff):
        for call in (
            lambda a=actor: run_member_add(a, run, charlie, Part.ORGANISER),
            lambda a=actor: run_member_remove(a, run, alice),
            lambda a=actor: run_member_add(a, run, a, Part.ORGANISER),
        ):
            assert code_of(call) == ErrorCode.FORBIDDEN
    assert RunMember.objects.count() == 2
    assert code_of(lambda: run_transition(bob, run, "pause")) == ErrorCode.FORBIDDEN


def test_a_role_opens_a_private_run_and_its_end_closes_it(run: Run, alice: User, bob: User) -> None:
    assert code_of(lambda: run_get_visible(bob, "demo")) == ErrorCode.RUN_NOT_FOUND
    run_member_add(alice, run, bob, Part.VIEWER, reason="curious")
    assert code_of(lambda: run_get_visible(bob, "demo")) == "ok"
    assert run_rights(bob, run) == {Right.LOOK}
    run_member_remove(alice, run, bob, reason="enough")
    run_member_remove(alice, run, bob)
    assert code_of(lambda: run_get_visible(bob, "demo")) == ErrorCode.RUN_NOT_FOUND
    given, taken = AuditEntry.objects.filter(code__startswith="run.member.").order_by("seq")
    assert (given.data["before"], given.data["after"]) == ({"part": "none"}, {"part": "viewer"})
    assert (taken.code, taken.data["reason"]) == ("run.member.removed", "enough")
    assert taken.data["before"] == {"part": "viewer"}


def test_the_last_organiser_stays(run: Run, alice: User, bob: User) -> None:
    for call in (
        lambda: run_member_remove(alice, run, alice),
        lambda: run_member_add(alice, run, alice, Part.VIEWER),
    ):
        assert code_of(call) == ErrorCode.BODY_INVALID
    run_member_add(alice, run, bob, Part.ORGANISER)
    User.objects.filter(pk=bob.pk).update(banned_at=timezone.now())
    assert code_of(lambda: run_member_remove(alice, run, alice)) == ErrorCode.BODY_INVALID, (
        "a suspended organiser organises nothing"
    )
    assert run_rights(alice, run) == frozenset(Right)


def test_a_founder_is_not_driven_out_but_may_hand_over(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    run_member_add(alice, run, bob, Part.ORGANISER)
    run_member_add(bob, run, charlie, Part.ORGANISER)
    assert code_of(lambda: run_member_remove(bob, run, alice)) == ErrorCode.FORBIDDEN
    assert code_of(lambda: run_member_add(bob, run, alice, Part.VIEWER)) == ErrorCode.FORBIDDEN
    run_member_remove(charlie, run, charlie)
    run_member_remove(alice, run, alice)
    run = Run.objects.get()
    assert [user.username for user in run_organisers(run)] == ["bob"]
    assert run_roles_of(alice, run) == {RunRole.STAFF}
    assert code_of(lambda: run_member_remove(bob, run, bob)) == ErrorCode.BODY_INVALID
    root = user_make("rooty", is_superuser=True)
    run_member_add(root, run, alice, Part.ORGANISER)
    run_member_add(root, run, bob, Part.VIEWER)
    assert Run.objects.get().organiser == alice


def test_nonsense_is_refused(run: Run, alice: User, bob: User) -> None:
    machine = user_make("yard", is_service=True)
    assert code_of(lambda: run_member_add(alice, run, bob, "king")) == ErrorCode.BODY_INVALID
    call = lambda: run_member_add(alice, run, machine, Part.VIEWER)  # noqa: E731
    assert code_of(call) == ErrorCode.BODY_INVALID


def test_a_moderator_shuts_out_volunteers_and_nobody_with_a_role(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    erin = user_make("erin")
    run_member_add(alice, run, erin, Part.MODERATOR)
    run_member_add(alice, run, bob, Part.VIEWER)
    for person in (alice, bob, erin):
        assert code_of(lambda p=person: run_bar_add(erin, run, p, "x")) == ErrorCode.FORBIDDEN
    run_bar_add(erin, run, charlie, "noise")
    run_bar_add(alice, run, bob, "leaked addresses")
    assert run_rights(bob, run) == frozenset(), "a bar ends the role"
    entry = AuditEntry.objects.filter(code="run.person.barred").latest("seq")
    assert entry.data["part_lost"] == "viewer"


def test_giving_the_same_role_again_writes_nothing(run: Run, alice: User, bob: User) -> None:
    for _ in range(2):
        run_member_add(alice, run, bob, Part.VIEWER)
    assert AuditEntry.objects.filter(code="run.member.added").count() == 1
