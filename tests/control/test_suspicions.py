"""The desk's page about suspicions."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import Swarm, report_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.contributions.grounds import SuspicionKind
from web.contributions.models import ContributionTotal, LedgerEntry, Suspicion
from web.contributions.noticing import Found
from web.contributions.suspicions import suspicions_raise
from web.core.models import AuditEntry

PAGE = "/control/runs/demo/suspicions/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    """bob's machine is suspicious since epoch 0, and epoch 1 waits."""
    made = swarm_make(run_make(alice), 1, users=[bob])
    now, device = timezone.now(), made.volunteers[0].device
    snapshot_take(made, now, epoch=1, finished_epochs=(report_make(made, 0, now),))
    suspicions_raise(made.run, [Found(device.pk, SuspicionKind.CLOCK, {"seconds_late": 120})], now)
    snapshot_take(made, now, epoch=2, finished_epochs=(report_make(made, 1, now),))
    return made


def address() -> str:
    return f"{PAGE}{Suspicion.objects.get().pk}/"


def states() -> list[tuple[int, str]]:
    return list(LedgerEntry.objects.order_by("pk").values_list("epoch", "state"))


def test_the_desk_says_that_something_is_to_be_decided(desk: Client, swarm: Swarm) -> None:
    assert states() == [(0, "confirmed"), (1, "provisional")]
    assert "1 to decide" in desk.get("/control/runs/demo/").text
    text = desk.get(PAGE).text
    assert "its signed reports are dated wrongly" in text
    assert "seconds late 120" in text
    assert "1 entry with 50 samples wait in this run" in text
    one = desk.get(address()).text
    assert "1 entry with 50 samples" in one
    assert "Set the machine&#x27;s clock by a time server." in one


@pytest.mark.parametrize(
    ("decision", "state", "samples", "said"),
    [
        ("cleared", "confirmed", 100, "1 waiting entry was confirmed"),
        ("upheld", "rejected", 50, "1 waiting entry was rejected"),
    ],
)
def test_a_decision_settles_what_waits_and_is_audited(
    desk: Client, swarm: Swarm, decision: str, state: str, samples: int, said: str
) -> None:
    answer = desk.post(address(), {"decision": decision, "reason": "looked"}, follow=True)
    assert said in answer.text
    assert "looked" in answer.text
    assert "Nothing to decide" in answer.text
    assert states()[-1] == (1, state)
    assert ContributionTotal.objects.get().samples == samples
    entry = AuditEntry.objects.get(code=f"suspicion.{decision}")
    assert (entry.actor_name, entry.data["samples"]) == ("alice", 50)
    again = desk.post(address(), {"decision": "cleared", "reason": "x"}, follow=True)
    assert "This is decided already." in again.text
    assert "to decide</span>" not in desk.get("/control/runs/demo/").text


@pytest.mark.parametrize("body", [{}, {"decision": "cleared"}, {"decision": "x", "reason": "y"}])
def test_a_decision_needs_a_reason(desk: Client, swarm: Swarm, body: dict[str, str]) -> None:
    answer = desk.post(address(), body)
    assert answer.status_code == 200
    assert "alert" in answer.text or "error" in answer.text
    assert Suspicion.objects.get().state == "open"


def test_only_organisers_of_the_run_decide(client: Client, swarm: Swarm, bob: User) -> None:
    other = run_make(swarm.run.organiser, "other")
    client.force_login(swarm.run.organiser)
    path = f"/control/runs/{other.slug}/suspicions/{Suspicion.objects.get().pk}/"
    assert client.get(path).status_code == 404
    for user, status in ((bob, 403), (user_make("dave", is_staff=True), 403)):
        client.force_login(user)
        body = {"decision": "cleared", "reason": "x"}
        assert client.post(address(), body).status_code == status
    assert client.get(PAGE).status_code == 200, "the staff may look"
    assert "Decide…" not in client.get(PAGE).text
    assert Suspicion.objects.get().state == "open"
