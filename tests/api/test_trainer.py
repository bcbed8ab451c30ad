"""Calls of trainers over HTTP."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import bearer, device_make, token_make
from tests.factories_runs import (
    Swarm,
    join_request,
    report_make,
    run_make,
    snapshot_take,
    swarm_key,
    swarm_make,
)
from training.protocol.api import Challenge, JoinResponse, PassResponse, ReceiptOut, WhyOut
from training.protocol.claims import Receipt
from training.protocol.envelope import verify
from training.protocol.keys import key_generate
from training.protocol.names import TYP_RECEIPT
from training.protocol.states import Command
from web.accounts.models import ApiToken, User
from web.contributions.models import LedgerEntry
from web.core.keys import site_keys_public
from web.runs.models import Run
from web.runs.services import join_request_approve, join_request_make

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/demo/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 1, users=[bob])


def post(client: Client, path: str, token: str, body: Any) -> Any:
    return client.post(RUN + path, body, content_type="application/json", headers=bearer(token))


def test_a_volunteer_joins_and_keeps_the_pass_fresh(client: Client, alice: User, bob: User) -> None:
    run_make(alice)
    token = token_make(bob)
    answer = client.get(RUN + "challenge/", headers=bearer(token))
    challenge = Challenge.model_validate_json(answer.content)
    request = join_request(challenge.challenge, key_generate(), swarm_key())
    answer = post(client, "join/", token, request.model_dump(mode="json"))
    assert answer.status_code == 200, answer.content
    assert "pass" in answer.json()
    joined = JoinResponse.model_validate_json(answer.content)
    assert joined.username == "bob"
    assert ApiToken.objects.get().device is not None

    answer = post(client, "pass/", token, {"epoch": 1, "samples": 5, "state": "training"})
    assert answer.status_code == 200, answer.content
    beat = PassResponse.model_validate_json(answer.content)
    assert (beat.config_version, beat.commands) == (1, (Command.RESUME,))
    why = WhyOut.model_validate_json(client.get(RUN + "why/", headers=bearer(token)).content)
    assert why.links[-1].code == "coordinator"


def test_receipts_are_signed_by_the_site(client: Client, swarm: Swarm) -> None:
    now = timezone.now()
    reports = (report_make(swarm, 0, now), report_make(swarm, 1, now, samples=7))
    snapshot_take(swarm, now, epoch=2, finished_epochs=reports)
    device = swarm.volunteers[0].device
    token = token_make(device.user, device=device)
    page = client.get(RUN + "receipts/", headers=bearer(token)).json()
    rows = [ReceiptOut.model_validate(item) for item in page["items"]]
    assert [(row.epoch, row.samples, row.state) for row in rows] == [
        (1, 7, "confirmed"),
        (0, 50, "confirmed"),
    ]
    receipt = verify(
        rows[0].jws, typ=TYP_RECEIPT, model=Receipt, keys=site_keys_public(), now=timezone.now()
    ).body
    assert (receipt.user, receipt.device, receipt.samples) == ("bob", device.public_id, 7)


def test_a_receipt_says_why_and_since_when_it_waited(client: Client, swarm: Swarm) -> None:
    device = swarm.volunteers[0].device
    given = {"run": swarm.run, "lineage": 1, "epoch": 3, "device": device, "user": device.user}
    given |= {"samples": 9, "finished_at": timezone.now()}
    waiting = LedgerEntry.objects.create(
        state="provisional", ground="unsigned", reason="waits for a report", **given
    )

    def newest() -> Receipt:
        headers = bearer(token_make(device.user, device=device))
        (row,) = client.get(RUN + "receipts/", headers=headers).json()["items"]
        keys = site_keys_public()
        jws = row["jws"]
        receipt = verify(jws, typ=TYP_RECEIPT, model=Receipt, keys=keys, now=timezone.now()).body
        assert (row["state"], row["code"]) == (receipt.state, receipt.code)
        return receipt

    first = newest()
    assert (first.state, first.code, first.reason) == (
        "provisional", "unsigned", "waits for a report",
    )  # fmt: skip
    assert first.waited_since is None
    LedgerEntry.objects.create(state="confirmed", settles=waiting, **given)
    second = newest()
    assert (second.state, second.code, second.reason) == ("confirmed", "", "")
    assert second.waited_since == waiting.recorded_at


def test_a_person_asks_why_in_the_browser(client: Client, swarm: Swarm, charlie: User) -> None:
    device = swarm.volunteers[0].device
    client.force_login(device.user)
    links = client.get(RUN + "why/").json()["links"]
    assert links[0]["code"] == "account"
    assert links[-1]["ok"] is False
    other, _ = device_make(charlie)
    assert client.get(RUN + f"why/?device={other.public_id}").status_code == 404
    assert client.get(RUN + f"why/?device={device.public_id}").status_code == 200
    client.force_login(charlie)
    assert client.get(RUN + "why/").json()["links"][-1]["code"] == "joined"


def test_a_person_without_a_machine_is_told_to_join(
    client: Client, alice: User, charlie: User
) -> None:
    run_make(alice)
    client.force_login(charlie)
    assert client.get(RUN + "why/").json()["code"] == "not_joined"
    token = token_make(charlie)
    for response in (
        client.get(RUN + "receipts/", headers=bearer(token)),
        post(client, "pass/", token, {}),
    ):
        assert (response.status_code, response.json()["code"]) == (409, "not_joined")


@pytest.mark.parametrize(
    ("path", "method"),
    [("challenge/", "get"), ("join/", "post"), ("pass/", "post"), ("receipts/", "get")],
)
def test_who_may_call(
    client: Client, alice: User, bob: User, mallory: User, path: str, method: str
) -> None:
    run_make(alice)
    call = getattr(client, method)
    options = {"content_type": "application/json", "data": "{}"} if method == "post" else {}
    assert call(RUN + path, **options).json()["code"] == "not_authenticated"
    headers = bearer(token_make(mallory))
    assert call(RUN + path, headers=headers, **options).json()["code"] == "banned"
    headers = bearer(token_make(bob, "read"))
    assert call(RUN + path, headers=headers, **options).json()["code"] == "forbidden"
    headers = bearer(token_make(bob, run_slug="other"))
    assert call(RUN + path, headers=headers, **options).json()["code"] == "forbidden"
    unknown = (RUN + path).replace("demo", "nothing")
    headers = bearer(token_make(bob))
    if path not in ("join/",):
        assert call(unknown, headers=headers, **options).json()["code"] == "run_not_found"


@pytest.mark.parametrize("body", ["", "nonsense", "[]", "{}", '{"peer_id": 5}'])
def test_a_body_that_is_not_a_join_request_is_refused(
    client: Client, alice: User, bob: User, body: str
) -> None:
    run_make(alice)
    answer = client.post(
        RUN + "join/", body, content_type="application/json", headers=bearer(token_make(bob))
    )
    problem = answer.json()
    assert answer.status_code in (400, 422)
    assert (problem["code"], bool(problem["remedy"])) == ("body_invalid", True)


def test_a_run_that_asks_for_approval_refuses_with_what_to_do(
    client: Client, alice: User, bob: User
) -> None:
    run = run_make(alice)
    Run.objects.filter(pk=run.pk).update(join_policy=Run.JoinPolicy.APPROVAL)
    token = token_make(bob)
    found = client.get(RUN + "challenge/", headers=bearer(token))
    challenge = Challenge.model_validate_json(found.content).challenge
    body = join_request(challenge, key_generate(), swarm_key()).model_dump(mode="json")
    answer = post(client, "join/", token, body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (403, "approval_pending")
    assert "not asked" in problem["detail"]
    assert "beeyard join" in problem["remedy"]
    join_request_approve(alice, join_request_make(bob, run, "One GPU"))
    assert post(client, "join/", token, body).status_code == 200
