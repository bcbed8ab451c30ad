"""Requests to join, on the page Join, in the queue and at the run's desk."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import user_make
from tests.factories_runs import run_make
from web.accounts.models import User
from web.runs.models import Run, RunJoinRequest
from web.runs.services import join_request_make

JOIN = "/runs/demo/join/"
DESK = "/control/runs/demo/requests/"


@pytest.fixture
def run(alice: User) -> Run:
    made = run_make(alice)
    Run.objects.filter(pk=made.pk).update(join_policy="approval")
    made.refresh_from_db()
    return made


def page_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_volunteer_asks_waits_and_is_approved(run: Run, alice: User, bob: User) -> None:
    assert "asks for approval" in Client().get(JOIN).text
    mine, desk = page_of(bob), page_of(alice)
    assert "Ask to join" in mine.get(JOIN).text
    assert "Your request waits" in mine.post(f"{JOIN}ask/", {"text": "<b>Hi</b>"}, follow=True).text
    queue = desk.get("/control/queue/?kind=approval").text
    assert "bob asks to join" in queue
    assert "&lt;b&gt;Hi&lt;/b&gt;" in queue
    assert f'href="{DESK}bob/"' in queue
    assert "1 asks to join" in desk.get("/control/runs/demo/").text
    assert "May bob join" in desk.get(f"{DESK}bob/").text
    answer = desk.post(f"{DESK}bob/", {"decision": "approved", "reason": ""}, follow=True)
    assert "bob may join The demo run now." in answer.text
    assert "You are approved" in mine.get(JOIN).text
    assert "No request waits" in desk.get("/control/queue/?kind=approval").text
    assert "is approved already" in desk.get(f"{DESK}bob/", follow=True).text


def test_a_refusal_needs_a_reason_which_the_person_reads(run: Run, alice: User, bob: User) -> None:
    join_request_make(bob, run, "")
    desk = page_of(alice)
    assert "Say why." in desk.post(f"{DESK}bob/", {"decision": "refused", "reason": ""}).text
    desk.post(f"{DESK}bob/", {"decision": "refused", "reason": "We are full."})
    page = page_of(bob).get(JOIN).text
    assert "We are full." in page
    assert "You may ask again from" in page
    assert "<textarea" not in page
    assert page_of(bob).post(f"{JOIN}ask/", {"text": ""}).status_code == 403
    assert "Decide again" in desk.get(DESK).text


def test_an_open_run_asks_nothing(alice: User, bob: User) -> None:
    run_make(alice)
    page = page_of(bob).get(JOIN).text
    assert "approval" not in page
    assert "without asking" in page_of(alice).get(DESK).text


def test_the_way_to_join_is_chosen_with_the_texts(run: Run, alice: User) -> None:
    desk, texts = page_of(alice), {"title": "T", "summary": "S", "is_public": "on"}
    for policy in ("open", "approval"):
        desk.post("/control/runs/demo/texts/", texts | {"join_policy": policy})
        run.refresh_from_db()
        assert run.join_policy == policy


def test_many_requests_take_no_more_queries(run: Run, alice: User) -> None:
    desk = page_of(alice)
    join_request_make(user_make("first"), run, "Hello")
    for path in (DESK, "/control/queue/", "/control/runs/demo/"):
        desk.get(path)
        with CaptureQueriesContext(connection) as few:
            desk.get(path)
        for number in range(8):
            join_request_make(user_make(f"guest{number}{len(path)}"), run, "Hello")
        with CaptureQueriesContext(connection) as many:
            assert " to join" in desk.get(path).text
        assert len(many) <= len(few), path
    assert RunJoinRequest.objects.count() == 25


def test_a_page_that_is_out_of_date_decides_nothing(run: Run, alice: User, bob: User) -> None:
    join_request_make(bob, run, "")
    desk = page_of(alice)
    assert 'name="seen" value="pending"' in desk.get(f"{DESK}bob/").text
    desk.post(f"{DESK}bob/", {"decision": "refused", "reason": "Full.", "seen": "pending"})
    late = {"decision": "approved", "seen": "pending"}
    assert "is decided already" in desk.post(f"{DESK}bob/", late, follow=True).text
    assert RunJoinRequest.objects.get().state == "refused"
    assert 'value="refused"' in desk.get(f"{DESK}bob/").text
    desk.post(f"{DESK}bob/", late | {"seen": "refused"})
    assert RunJoinRequest.objects.get().state == "approved"


def test_words_that_came_after_none_were_read_are_not_approved(
    run: Run, alice: User, bob: User
) -> None:
    join_request_make(bob, run, "")
    join_request_make(bob, run, "I sell.")
    late = {"decision": "approved", "seen": "pending", "words": ""}
    page_of(alice).post(f"{DESK}bob/", late)
    assert RunJoinRequest.objects.get().state == "pending"


def test_only_words_that_were_read_are_approved(run: Run, alice: User, bob: User) -> None:
    join_request_make(bob, run, "I study.")
    desk = page_of(alice)
    assert 'name="words" value="I study."' in desk.get(f"{DESK}bob/").text
    join_request_make(bob, run, "I sell.")
    late = {"decision": "approved", "seen": "pending", "words": "I study."}
    assert "written something else" in desk.post(f"{DESK}bob/", late, follow=True).text
    assert RunJoinRequest.objects.get().state == "pending"
    desk.post(f"{DESK}bob/", late | {"words": "I sell."})
    assert RunJoinRequest.objects.get().state == "approved"


def test_a_banned_person_waits_in_no_queue(run: Run, alice: User, bob: User) -> None:
    join_request_make(bob, run, "")
    User.objects.filter(pk=bob.pk).update(banned_at=run.created_at)
    desk = page_of(alice)
    assert "bob asks" not in desk.get("/control/queue/?kind=approval").text
    assert "is banned" in desk.post(f"{DESK}bob/", {"decision": "approved"}, follow=True).text


def test_a_volunteer_withdraws_what_they_asked(run: Run, alice: User, bob: User) -> None:
    mine, desk = page_of(bob), page_of(alice)
    mine.post(f"{JOIN}ask/", {"text": "Hi"})
    assert "Withdraw the request" in mine.get(JOIN).text
    page = mine.post(f"{JOIN}withdraw/", follow=True).text
    assert "Your request is withdrawn." in page
    assert "Ask to join" in page
    assert "bob" not in desk.get(DESK).text
    assert desk.get(f"{DESK}bob/").status_code == 404, "a page that is out of date"
    assert "No request of yours" in mine.post(f"{JOIN}withdraw/", follow=True).text
