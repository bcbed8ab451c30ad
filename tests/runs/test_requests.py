"""A run that asks for approval: people ask, moderators decide, and only then they join."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import peer_joined, run_make
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run, RunJoinRequest, RunMember
from web.runs.request_selectors import join_requests_open
from web.runs.services import (
    join_request_approve,
    join_request_make,
    join_request_refuse,
    join_request_withdraw,
    run_bar_add,
    run_bar_lift,
    run_clone,
    run_describe,
    run_member_add,
    run_transition,
)


def code_of(call: Callable[[], object]) -> str:
    try:
        call()
    except AppError as error:
        return error.code
    return "ok"


def join(run: Run, user: User, number: int = 0) -> Callable[[], object]:
    return lambda: peer_joined(run, user, key_generate(), number)


@pytest.fixture
def run(alice: User) -> Run:
    made = run_make(alice)
    assert run_describe(
        alice, made, title=made.title, summary=made.summary, description="", is_public=True,
        join_policy="approval",
    )  # fmt: skip
    return made


@pytest.fixture
def erin(alice: User, run: Run) -> User:
    """A moderator."""
    person = user_make("erin")
    run_member_add(alice, run, person, RunMember.Part.MODERATOR)
    return person


def test_nobody_new_joins_before_a_yes_and_then_as_everybody(
    run: Run, alice: User, bob: User, erin: User
) -> None:
    with pytest.raises(AppError, match="not asked") as refused:
        join(run, bob)()
    assert refused.value.code == ErrorCode.APPROVAL_PENDING
    assert refused.value.code.info.status == 403
    asked = join_request_make(bob, run, "  One   GPU at night. ")
    assert asked.text == "One GPU at night."
    with pytest.raises(AppError, match="nobody has decided"):
        join(run, bob)()
    join_request_approve(erin, asked)
    assert code_of(join(run, bob)) == "ok"
    codes = list(AuditEntry.objects.filter(code__startswith="run.join.").order_by("seq"))
    assert [(e.code, e.actor_name, e.target) for e in codes] == [
        ("run.join.asked", "bob", "demo/bob"), ("run.join.approved", "erin", "demo/bob"),
    ]  # fmt: skip


def test_whoever_is_in_the_run_stays_in_it(run: Run, alice: User, erin: User, bob: User) -> None:
    run_member_add(alice, run, bob, RunMember.Part.VOLUNTEER)
    service = user_make("yard", is_service=True)
    for number, user in enumerate((alice, erin, bob, service)):
        assert code_of(join(run, user, number % 2)) in ("ok", ErrorCode.PEER_ID_TAKEN)
        assert code_of(partial(join_request_make, user, run, "")) == ErrorCode.BODY_INVALID


def test_a_refused_person_reads_why_and_may_ask_again_after_a_day(
    run: Run, bob: User, erin: User
) -> None:
    asked = join_request_make(bob, run, "Hello")
    assert code_of(lambda: join_request_refuse(erin, asked, " ")) == ErrorCode.BODY_INVALID
    join_request_refuse(erin, asked, "We are full.")
    with pytest.raises(AppError, match="We are full") as refused:
        join(run, bob)()
    assert refused.value.code == ErrorCode.APPROVAL_PENDING
    assert code_of(lambda: join_request_make(bob, run, "Please")) == ErrorCode.FORBIDDEN
    earlier = timezone.now() - timedelta(days=1, seconds=1)
    RunJoinRequest.objects.update(decided_at=earlier)
    again = join_request_make(bob, run, "Please")
    assert (again.pk, again.state, again.reason) == (asked.pk, "pending", "")


def test_a_no_may_become_a_yes_and_a_yes_stays(run: Run, bob: User, erin: User) -> None:
    asked = join_request_make(bob, run, "")
    join_request_refuse(erin, asked, "Not now.")
    assert code_of(lambda: join_request_refuse(erin, asked, "No.")) == ErrorCode.BODY_INVALID
    join_request_approve(erin, asked)
    assert code_of(lambda: join_request_approve(erin, asked)) == ErrorCode.BODY_INVALID
    assert code_of(lambda: join_request_refuse(erin, asked, "No.")) == ErrorCode.BODY_INVALID


def test_only_moderators_decide_and_not_everybody_may_ask(
    run: Run, alice: User, bob: User, charlie: User, mallory: User
) -> None:
    asked = join_request_make(bob, run, "")
    for user in (bob, charlie):
        assert code_of(partial(join_request_approve, user, asked)) == ErrorCode.FORBIDDEN
        assert code_of(partial(join_request_refuse, user, asked, "x")) == ErrorCode.FORBIDDEN
    assert code_of(lambda: join_request_make(mallory, run, "")) == ErrorCode.BANNED
    run_bar_add(alice, run, charlie, "spam")
    assert code_of(lambda: join_request_make(charlie, run, "")) == ErrorCode.BARRED
    for text in ("x" * 301, "\x00", "\ud800"):
        assert code_of(partial(join_request_make, bob, run, text)) == ErrorCode.BODY_INVALID
    run_transition(alice, run, "finish")
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert code_of(lambda: join_request_make(bob, run, "")) == ErrorCode.RUN_OVER


def test_asking_again_while_it_waits_changes_the_text_only(run: Run, bob: User) -> None:
    first = join_request_make(bob, run, "Hello")
    second = join_request_make(bob, run, "Hello, with two GPUs")
    assert (second.pk, second.asked_at) == (first.pk, first.asked_at)


def test_an_open_run_takes_everybody_and_a_clone_asks_like_its_model(
    run: Run, alice: User, bob: User
) -> None:
    assert run_clone(alice, run, slug="twin", title="Twin").join_policy == "approval"
    texts = {"title": "T", "summary": "S", "description": "", "is_public": True}
    assert run_describe(alice, run, **texts)  # type: ignore[arg-type]
    assert run.join_policy == "approval", "not said: left as it is"
    assert code_of(lambda: run_describe(alice, run, **texts, join_policy="x")) == "body_invalid"  # type: ignore[arg-type]
    assert run_describe(alice, run, **texts, join_policy="open")  # type: ignore[arg-type]
    assert code_of(join(run, bob)) == "ok"


def test_of_two_moderators_the_slower_one_does_not_overrule_the_faster(
    run: Run, alice: User, bob: User, erin: User
) -> None:
    asked = join_request_make(bob, run, "")
    join_request_refuse(erin, asked, "We are full.", seen="pending")
    late = partial(join_request_approve, alice, asked, seen="pending")
    assert code_of(late) == ErrorCode.BODY_INVALID
    assert code_of(join(run, bob)) == ErrorCode.APPROVAL_PENDING
    join_request_approve(alice, asked, seen="refused")
    assert code_of(join(run, bob)) == "ok"


def test_nobody_who_is_shut_out_is_approved(run: Run, alice: User, bob: User, erin: User) -> None:
    asked = join_request_make(bob, run, "")
    run_bar_add(alice, run, bob, "spam")
    assert code_of(lambda: join_request_approve(erin, asked)) == ErrorCode.BARRED
    run_bar_lift(alice, run, bob)
    RunMember.objects.filter(user=bob).delete()
    User.objects.filter(pk=bob.pk).update(banned_at=timezone.now())
    assert code_of(lambda: join_request_approve(erin, asked)) == ErrorCode.BANNED
    assert join_requests_open(run) == 0
    join_request_refuse(erin, asked, "You are banned.")


def test_the_same_words_sent_twice_are_one_entry_of_the_audit_log(run: Run, bob: User) -> None:
    for text in ("Hello", "Hello", "Hello again"):
        join_request_make(bob, run, text)
    assert AuditEntry.objects.filter(code="run.join.asked").count() == 2


def test_a_request_is_withdrawn_while_it_waits(run: Run, alice: User, bob: User) -> None:
    asked = join_request_make(bob, run, "Hi.")
    join_request_withdraw(bob, run)
    assert not RunJoinRequest.objects.exists()
    entry = AuditEntry.objects.get(code="run.join.withdrawn")
    assert (entry.target, entry.actor_name, entry.data) == ("demo/bob", "bob", {"text": "Hi."})
    with pytest.raises(AppError, match="withdrawn meanwhile"):
        join_request_approve(alice, RunJoinRequest(pk=asked.pk or 1, run=run, user=bob))
    with pytest.raises(AppError, match="No request of yours"):
        join_request_withdraw(bob, run)
    join_request_approve(alice, join_request_make(bob, run, "Again."))
    with pytest.raises(AppError, match="No request of yours"):
        join_request_withdraw(bob, run)
