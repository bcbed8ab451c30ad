"""Shutting people out of one run: who may, whom, and what it means."""

import pytest
from django.test import Client

from tests.factories import device_make, user_make
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run, RunBar, RunDeviceBar, RunMember
from web.runs.selectors import run_get_visible, runs_visible
from web.runs.services import run_bar_add, run_bar_lift, run_device_bar_add, run_member_add

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(alice: User, bob: User) -> Run:
    run = run_make(alice, "hidden", is_public=False)
    run_member_add(alice, run, bob, RunMember.Part.VOLUNTEER)
    return run


def test_a_bar_is_a_row_with_its_reason_and_an_audit_entry(
    run: Run, alice: User, bob: User
) -> None:
    run_bar_add(alice, run, bob, "  noise ")
    bar = RunBar.objects.get()
    assert (bar.run, bar.user, bar.reason, bar.barred_by) == (run, bob, "noise", alice)
    entry = AuditEntry.objects.get(code="run.person.barred")
    assert (entry.actor_name, entry.target, entry.data) == (
        "alice", "hidden/bob", {"reason": "noise"},
    )  # fmt: skip
    run_bar_lift(alice, run, bob)
    run_bar_lift(alice, run, bob)
    assert not RunBar.objects.exists()
    assert AuditEntry.objects.filter(code="run.person.restored").count() == 1


def test_who_may_bar_whom(run: Run, alice: User, bob: User, charlie: User, mallory: User) -> None:
    root = user_make("rooty", is_superuser=True)
    other_staff = user_make("dave", is_staff=True)
    machine = user_make("yard", is_service=True)
    helper = user_make("erin")
    RunMember.objects.create(run=run, user=helper, part=RunMember.Part.ORGANISER)
    allowed = [(alice, bob), (helper, charlie), (root, other_staff)]
    refused = [
        (bob, charlie), (charlie, bob), (mallory, bob), (other_staff, bob),
        (helper, alice), (alice, helper), (alice, alice), (alice, root), (alice, machine),
    ]  # fmt: skip
    for actor, user in refused:
        with pytest.raises(AppError) as error:
            run_bar_add(actor, run, user, "x")
        assert error.value.code == ErrorCode.FORBIDDEN, (actor, user)
    for actor, user in allowed:
        run_bar_add(actor, run, user, "x")
    with pytest.raises(AppError) as error:
        run_bar_lift(charlie, run, bob)
    assert error.value.code == ErrorCode.FORBIDDEN
    assert RunBar.objects.count() == len(allowed)


def test_a_bar_needs_a_reason(run: Run, alice: User, bob: User) -> None:
    with pytest.raises(AppError) as error:
        run_bar_add(alice, run, bob, " ")
    assert error.value.code == ErrorCode.BODY_INVALID


def test_a_private_run_is_closed_to_the_barred_who_are_told_why(
    run: Run, alice: User, bob: User, client: Client
) -> None:
    run_bar_add(alice, run, bob, "noise")
    with pytest.raises(AppError) as error:
        run_get_visible(bob, "hidden")
    assert (error.value.code, error.value.detail) == (
        ErrorCode.BARRED, "You are barred from this run: noise",
    )  # fmt: skip
    assert run not in runs_visible(bob)
    client.force_login(bob)
    assert client.get("/runs/hidden/").status_code == 403
    assert "noise" in client.get("/runs/hidden/").text
    run_bar_lift(alice, run, bob)
    assert client.get("/runs/hidden/").status_code == 200


def test_a_public_run_stays_readable(alice: User, bob: User, client: Client) -> None:
    run = run_make(alice)
    run_bar_add(alice, run, bob, "noise")
    client.force_login(bob)
    assert client.get("/runs/demo/").status_code == 200
    assert run in runs_visible(bob)


def test_a_barred_person_gets_no_part_in_the_run(run: Run, alice: User, bob: User) -> None:
    run_bar_add(alice, run, bob, "noise")
    with pytest.raises(AppError) as error:
        run_member_add(alice, run, bob, RunMember.Part.ORGANISER)
    assert error.value.code == ErrorCode.BARRED


def test_an_organisers_machine_is_shut_out_by_its_owner_or_an_administrator_only(
    run: Run, alice: User, bob: User
) -> None:
    erin, root = user_make("erin", is_staff=True), user_make("root", is_superuser=True)
    run_member_add(alice, run, erin, RunMember.Part.ORGANISER)
    hers, founders = device_make(erin, "tower")[0], device_make(alice, "laptop")[0]
    for actor, device, owner in ((alice, hers, "erin"), (erin, founders, "alice")):
        with pytest.raises(AppError, match=f"{owner} organises this run too") as refused:
            run_device_bar_add(actor, run, device, "odd losses")
        assert refused.value.code == ErrorCode.FORBIDDEN
    assert not RunDeviceBar.objects.exists()
    run_device_bar_add(erin, run, hers, "I need it")
    run_device_bar_add(root, run, founders, "odd losses")
    run_device_bar_add(alice, run, device_make(bob, "old")[0], "odd losses")
    assert RunDeviceBar.objects.count() == 3
