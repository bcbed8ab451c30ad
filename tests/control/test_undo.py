"""Barring, and the guided way: ban, recompute, roll back."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.control.scenes import harmed_run
from tests.factories_runs import (
    Swarm,
    accounts_make,
    config_publish,
    observation_make,
    report_make,
    snapshot_take,
)
from web.accounts.models import User
from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.models import AuditEntry
from web.monitoring.models import HarmUndo, Peer
from web.monitoring.selectors import live_state
from web.monitoring.services.revocations import revocations_current
from web.runs.models import Checkpoint, Run, RunBar
from web.runs.selectors import config_current

UNDO = "/control/runs/demo/undo/"


@pytest.fixture
def swarm(alice: User, bob: User, charlie: User) -> Swarm:
    return harmed_run(alice, [bob, charlie, bob])


def totals() -> dict[str, int]:
    rows = ContributionTotal.objects.values_list("user__username", "samples")
    return dict(rows)


def confirmed(**changes: Any) -> dict[str, Any]:
    return {
        "target": "user:bob",
        "from_epoch": 3,
        "action": "bar",
        "rewind": "on",
        "state": "1-2",
        "reason": "poisoned gradients",
        "is_meant": "on",
    } | changes


def test_a_person_is_barred_with_a_reason_and_let_in_again(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    page = desk.get("/control/runs/demo/people/bob/bar/").text
    assert "2 devices of bob go on the revocation list" in page
    assert desk.post("/control/runs/demo/people/bob/bar/", {"reason": ""}).status_code == 200
    assert not RunBar.objects.exists(), "a reason is needed"
    answer = desk.post("/control/runs/demo/people/bob/bar/", {"reason": "noise"}, follow=True)
    assert "bob is barred from The demo run." in answer.text
    assert "seen by 0 of 1 peers" in answer.text
    assert "Let in again" in answer.text
    desk.post("/control/runs/demo/people/bob/unbar/")
    assert not RunBar.objects.exists()


def test_the_desk_says_who_has_not_seen_the_list(desk: Client, swarm: Swarm, bob: User) -> None:
    assert "Nobody was ever revoked" in desk.get("/control/runs/demo/revocations/").text
    desk.post("/control/runs/demo/people/bob/bar/", {"reason": "noise"})
    late = desk.get("/control/runs/demo/revocations/").text
    assert "seen by 0 of 1 peers" in late
    assert "charlie" in late
    now = timezone.now() + timedelta(seconds=1)
    seen = observation_make(swarm.volunteers[1], now, epoch=6, revocations_seq=1)
    snapshot_take(swarm, now, epoch=6, peers=(seen,))
    page = desk.get("/control/runs/demo/revocations/").text
    assert "seen by 1 of 1 peers" in page
    assert "charlie" not in page
    assert "Every peer had it" in page


def test_the_preview_of_the_sites_own_trainers_begins_at_what_they_have(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    User.objects.filter(pk=bob.pk).update(is_service=True)
    page = desk.get(UNDO, {"target": "user:bob", "from_epoch": "3"}).text
    effect = re.search(r"<dt>Leaderboard</dt><dd>([\d,]+) → <strong>(-?[\d,]+)</strong>", page)
    assert effect
    before, after = (int(number.replace(",", "")) for number in effect.groups())
    assert before == totals()["bob"] > after >= 0


def test_the_preview_says_what_would_happen_and_changes_nothing(desk: Client, swarm: Swarm) -> None:
    before = (totals(), AuditEntry.objects.count(), config_current(swarm.run).version)
    assert "bob: only machine 0" in desk.get(UNDO).text
    page = desk.get(UNDO, {"target": "user:bob", "from_epoch": 3}).text
    assert "<strong>6</strong> entries of bob" in page
    assert "<strong>300</strong> samples, epochs 3 to 5" in page
    assert "600 → <strong>300</strong> samples, rank 1 → <strong>1</strong>" in page
    assert "<strong>epoch 2</strong> (lineage 1" in page
    assert "<strong>3</strong> trainers are in the swarm" in page
    assert "This cannot be undone" in page
    assert (totals(), AuditEntry.objects.count(), config_current(swarm.run).version) == before


def test_without_a_state_from_before_the_preview_says_so_and_the_ledger_can_be_corrected(
    desk: Client, swarm: Swarm
) -> None:
    page = desk.get(UNDO, {"target": "user:bob", "from_epoch": 1}).text
    assert "No saved state from before epoch 1 is kept" in page
    answer = desk.post(UNDO, confirmed(from_epoch=1, state=""))
    assert answer.status_code == 302
    undo = HarmUndo.objects.get()
    assert (undo.config, undo.samples) == (None, 500)


def test_confirming_bars_takes_back_and_rolls_back_in_one_step(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    answer = desk.post(UNDO, confirmed())
    undo = HarmUndo.objects.get()
    assert answer["Location"] == f"{UNDO}{undo.public_id}/"
    assert RunBar.objects.get().user == bob
    assert revocations_current(swarm.run).seq == undo.revocations_seq == 1
    assert totals() == {"bob": 300, "charlie": 300}
    assert LedgerEntry.objects.filter(user=bob, samples__lt=0).count() == undo.num_entries == 6
    config = config_current(swarm.run)
    assert (config.lineage, config.body["start"]["epoch"], undo.config) == (2, 2, config)
    assert (undo.num_peers, undo.samples) == (1, 300)
    codes = set(AuditEntry.objects.values_list("code", flat=True))
    assert codes >= {
        "run.person.barred", "run.revocations.changed", "ledger.reversed",
        "run.config.published", "run.rolled.back", "run.harm.undone",
    }  # fmt: skip
    assert live_state(swarm.run)["checkpoint_epoch"] == 2


def test_the_page_shows_how_far_it_has_come(desk: Client, swarm: Swarm) -> None:
    desk.post(UNDO, confirmed())
    path = f"{UNDO}{HarmUndo.objects.get().public_id}/"
    page = desk.get(path).text
    assert "0 of 1 trainers began anew" in page
    assert "Under way" in page
    assert page.count("(not yet)") == 4
    now = timezone.now() + timedelta(seconds=5)
    Peer.objects.filter(device=swarm.coordinator).update(lineage=2)
    Peer.objects.filter(pk=swarm.volunteers[1].peer.pk).update(lineage=2)
    report, charlie = report_make(swarm, 2, now), swarm.volunteers[1]
    peer = observation_make(
        charlie, now, epoch=3, lineage=2, revocations_seq=1, config_version=2,
        **accounts_make(swarm, charlie, [report]),
    )  # fmt: skip
    snapshot_take(swarm, now, lineage=2, epoch=3, peers=(peer,), finished_epochs=(report,))
    page = desk.get(f"{path}now/").text
    assert "1 of 1 trainers began anew" in page
    assert "Epoch 2 was finished from there" in page
    assert "Done" in page
    assert "(not yet)" not in page
    entry = LedgerEntry.objects.get(lineage=2, user__username="charlie")
    assert (entry.samples, entry.state) == (50, "confirmed"), "the new lineage counts"
    assert totals() == {"bob": 300, "charlie": 350}, "the barred one's machines count nothing"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"is_meant": ""}, "This field is required"),
        ({"reason": ""}, "This field is required"),
        ({"action": "explode"}, "Select a valid choice"),
        ({"state": "1-4"}, "nearest saved state has changed"),
        ({"target": "user:nobody"}, "Select a valid choice"),
        ({"from_epoch": -1}, "greater than or equal to 0"),
        ({"from_epoch": "soon"}, "Enter a whole number"),
    ],
)
def test_what_is_not_clear_is_not_done(
    desk: Client, swarm: Swarm, changes: dict[str, Any], complaint: str
) -> None:
    before = totals()
    answer = desk.post(UNDO, confirmed(**changes))
    assert answer.status_code == 200
    assert complaint in answer.text
    assert (totals(), HarmUndo.objects.exists(), RunBar.objects.exists()) == (before, False, False)


def test_a_state_that_is_gone_meanwhile_is_not_replaced_by_another(
    desk: Client, swarm: Swarm
) -> None:
    Checkpoint.objects.filter(epoch=2).delete()
    page = desk.post(UNDO, confirmed()).text
    assert "No saved state from before epoch 3 is kept" in page
    assert not HarmUndo.objects.exists()


def test_one_device_of_a_person_is_meant_alone(desk: Client, swarm: Swarm, bob: User) -> None:
    device = swarm.volunteers[0].device
    target = f"device:{device.public_id}"
    page = desk.get(UNDO, {"target": target, "from_epoch": 3}).text
    assert "only machine 0" in page
    desk.post(UNDO, confirmed(target=target, action="revoke"))
    device.refresh_from_db()
    assert device.is_revoked
    assert totals() == {"bob": 450, "charlie": 300}
    assert revocations_current(swarm.run).peer_ids == [swarm.volunteers[0].peer.peer_id]
    assert "The device machine 0 is revoked" in desk.get(
        f"{UNDO}{HarmUndo.objects.get().public_id}/"
    ).text  # fmt: skip


def test_staff_can_suspend_the_account_in_the_same_step_and_others_cannot(
    client: Client, desk: Client, swarm: Swarm, alice: User, bob: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=False)
    page = desk.post(UNDO, confirmed(action="ban"))
    assert "Select a valid choice" in page.text
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    assert desk.post(UNDO, confirmed(action="ban")).status_code == 302
    bob.refresh_from_db()
    assert (bob.is_banned, bob.banned_reason) == (True, "poisoned gradients")


def test_numbers_only_are_corrected_when_nobody_is_to_blame(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    desk.post(UNDO, confirmed(action="none", rewind="", state=""))
    assert totals()["bob"] == 300
    assert revocations_current(swarm.run).seq == 0
    assert config_current(swarm.run).lineage == 1
    assert "Done" in desk.get(f"{UNDO}{HarmUndo.objects.get().public_id}/").text


def test_a_run_that_is_over_is_corrected_and_not_rolled_back(desk: Client, swarm: Swarm) -> None:
    Run.objects.update(state="finished")
    assert "cannot be rolled back" in desk.get(UNDO, {"target": "user:bob", "from_epoch": 3}).text
    assert desk.post(UNDO, confirmed(state="")).status_code == 302
    assert HarmUndo.objects.get().config is None


def test_names_of_strangers_are_text_here_too(desk: Client, swarm: Swarm) -> None:
    swarm.volunteers[0].device.name = "<script>alert(1)</script>"
    swarm.volunteers[0].device.save()
    config_publish(swarm.run)
    for query in ({}, {"target": "user:bob", "from_epoch": 3}):
        assert "<script>alert" not in desk.get(UNDO, query).text
