"""Snapshots that are refused, and peers whose numbers nobody vouches for."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from tests.factories import device_make, token_make
from tests.factories_runs import (
    Swarm,
    metrics_make,
    observation_make,
    peer_make,
    report_make,
    run_make,
    signed,
    snapshot_make,
    snapshot_sign,
    snapshot_take,
    swarm_make,
)
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.metrics import EpochReport, EpochWork, PeerObservation
from training.protocol.names import TYP_METRICS, TYP_PASS, TYP_SNAPSHOT
from training.protocol.states import Role
from web.accounts.credentials import credential_of_token
from web.accounts.models import User
from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.errors import AppError
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.models import RunSwarm
from web.monitoring.observed import anonymous_id
from web.monitoring.selectors import live_state

pytestmark = pytest.mark.django_db


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 2, users=[bob])


def _tampered(swarm: Swarm, now: datetime) -> str:
    header, body, signature = snapshot_sign(swarm, snapshot_make(swarm, now), now).split(".")
    return ".".join((header, body[:-8] + "AAAAAAAA", signature))


def _foreign_key(swarm: Swarm, now: datetime) -> str:
    return signed(snapshot_make(swarm, now), TYP_SNAPSHOT, key_generate(), now)


def _another_type(swarm: Swarm, now: datetime) -> str:
    return signed(snapshot_make(swarm, now), TYP_PASS, swarm.coordinator_key, now)


def _expired(swarm: Swarm, now: datetime) -> str:
    return snapshot_sign(swarm, snapshot_make(swarm, now), now - timedelta(hours=1))


def _of_another_run(swarm: Swarm, now: datetime) -> str:
    return snapshot_sign(swarm, snapshot_make(swarm, now, run="other"), now)


def _of_a_lineage_to_come(swarm: Swarm, now: datetime) -> str:
    return snapshot_sign(swarm, snapshot_make(swarm, now, lineage=2), now)


def _of_tomorrow(swarm: Swarm, now: datetime) -> str:
    return snapshot_sign(swarm, snapshot_make(swarm, now + timedelta(days=1)), now)


def _of_another_shape(swarm: Swarm, now: datetime) -> str:
    return signed(metrics_make(swarm.volunteers[0], now), TYP_SNAPSHOT, swarm.coordinator_key, now)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda swarm, now: "garbage", ErrorCode.BAD_SIGNATURE),
        (lambda swarm, now: "", ErrorCode.BAD_SIGNATURE),
        (lambda swarm, now: "a.b.c", ErrorCode.BAD_SIGNATURE),
        (_tampered, ErrorCode.BAD_SIGNATURE),
        (_foreign_key, ErrorCode.UNKNOWN_KEY),
        (_another_type, ErrorCode.BAD_SIGNATURE),
        (_expired, ErrorCode.ENVELOPE_EXPIRED),
        (_of_another_run, ErrorCode.BODY_INVALID),
        (_of_a_lineage_to_come, ErrorCode.BODY_INVALID),
        (_of_tomorrow, ErrorCode.BODY_INVALID),
        (_of_another_shape, ErrorCode.BODY_INVALID),
    ],
)
def test_a_snapshot_that_is_not_right_changes_nothing(
    swarm: Swarm, make: Callable[[Swarm, datetime], str], code: ErrorCode
) -> None:
    now = timezone.now()
    snapshot_take(swarm, now)
    before = RunSwarm.objects.get()
    with pytest.raises(AppError) as error:
        snapshot_ingest(swarm.credential, swarm.run, make(swarm, now), now)

    assert error.value.code == code
    after = RunSwarm.objects.get()
    assert (after.live, after.last_seq) == (before.live, before.last_seq)


def test_only_the_coordinator_that_joined_last_reports(swarm: Swarm, alice: User) -> None:
    service = swarm.coordinator.user
    newer = peer_make(swarm.run, service, "second coordinator", role=Role.COORDINATOR)
    RunSwarm.objects.update(coordinator=newer.device)
    with pytest.raises(AppError) as error:
        snapshot_take(swarm)
    assert error.value.code == ErrorCode.FORBIDDEN
    assert "Another coordinator" in error.value.detail


def test_nobody_else_may_report(swarm: Swarm, bob: User) -> None:
    now = timezone.now()
    jws = snapshot_sign(swarm, snapshot_make(swarm, now), now)
    device, _ = device_make(bob)
    cases = {
        token_make(bob, "device", device=swarm.volunteers[0].device): ErrorCode.FORBIDDEN,
        token_make(bob, "coordinator"): ErrorCode.NOT_JOINED,
        token_make(bob, "coordinator", device=device): ErrorCode.NOT_JOINED,
        token_make(bob, "coordinator", device=swarm.volunteers[0].device): ErrorCode.NOT_JOINED,
    }
    for token, code in cases.items():
        with pytest.raises(AppError) as error:
            snapshot_ingest(credential_of_token(token, now), swarm.run, jws, now)
        assert error.value.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"run": "other"},
        {"lineage": 2},
        {"peer_id": "QmSomebodyElse"},
    ],
)
def test_metrics_of_another_place_are_not_verified(swarm: Swarm, changes: dict[str, str]) -> None:
    now = timezone.now()
    bob = swarm.volunteers[0]
    jws = signed(metrics_make(bob, now, **changes), TYP_METRICS, bob.key, now)
    snapshot_take(swarm, now, peers=(observation_make(bob, now, jws=jws),))
    _is_shown_without_name(swarm, bob.peer.public_id)


def test_forged_metrics_in_a_valid_snapshot_carry_no_name(swarm: Swarm) -> None:
    now = timezone.now()
    victim, liar = swarm.volunteers
    for jws in (
        signed(metrics_make(victim, now, samples_per_second=9e9), TYP_METRICS, liar.key, now),
        signed(metrics_make(victim, now), TYP_METRICS, victim.key, now + timedelta(days=1)),
        signed(metrics_make(victim, now), TYP_PASS, victim.key, now),
        "garbage",
        "",
    ):
        snapshot_take(swarm, now, peers=(observation_make(victim, now, jws=jws),))
        _is_shown_without_name(swarm, victim.peer.public_id)
        now += timedelta(seconds=1)


def _is_shown_without_name(swarm: Swarm, key: str) -> None:
    peer = live_state(swarm.run)["peers"][key]
    assert (peer["name"], peer["device"], peer["verified"]) == ("unverified peer", "", False)


def test_a_peer_without_an_account_is_shown_and_not_credited(swarm: Swarm) -> None:
    now = timezone.now()
    thumbprint = "f" * 64
    stock = PeerObservation(
        key_thumbprint=thumbprint, peer_id="QmStockStock", seen_at=now, samples_per_second=3.0
    )
    work = (EpochWork(key_thumbprint=thumbprint, samples=40),)
    report = EpochReport(epoch=0, finished_at=now, num_peers=1, work=work)
    snapshot_take(swarm, now, peers=(stock,), finished_epochs=(report,), epoch=1)

    state = live_state(swarm.run)
    peer = state["peers"][anonymous_id(swarm.run, thumbprint)]
    assert (peer["name"], peer["verified"], peer["samples_per_second"]) == (
        "unverified peer",
        False,
        3.0,
    )
    assert state["samples_total"] == 40
    assert not LedgerEntry.objects.exists()
    assert "QmStock" not in str(state)


def test_out_of_date_metrics_leave_the_known_row_to_age(swarm: Swarm) -> None:
    now = timezone.now()
    bob = swarm.volunteers[0]
    body = metrics_make(bob, now)
    jws = signed(body, TYP_METRICS, bob.key, now, lifetime=timedelta(seconds=30))
    snapshot_take(swarm, now, peers=(observation_make(bob, now, jws=jws),))
    later = now + timedelta(seconds=60)
    snapshot_take(swarm, later, peers=(observation_make(bob, later, jws=jws, seen_at=now),))

    peer = live_state(swarm.run, now=later)["peers"][bob.peer.public_id]
    assert (peer["name"], peer["state"], peer["samples_per_second"]) == ("bob", "silent", 0.0)


def test_a_banned_account_and_a_revoked_device_are_marked_and_not_credited(
    swarm: Swarm, alice: User
) -> None:
    now = timezone.now()
    first, second = swarm.volunteers
    User.objects.filter(pk=first.device.user_id).update(banned_at=now)
    snapshot_take(swarm, now, epoch=1, finished_epochs=(report_make(swarm, 0, now),))

    state = live_state(swarm.run)
    assert state["peers"][first.peer.public_id]["state"] == "banned"
    assert state["num_peers"] == 0
    reasons = set(LedgerEntry.objects.values_list("state", "reason"))
    assert reasons == {("rejected", "this account is suspended")}
    User.objects.update(banned_at=None)
    second.device.revoked_at = now
    second.device.save()
    snapshot_take(swarm, now, epoch=2, finished_epochs=(report_make(swarm, 1, now),))
    entry = LedgerEntry.objects.get(epoch=1, device=second.device)
    assert (entry.state, entry.reason) == ("rejected", "this device was revoked")
    assert ContributionTotal.objects.get().samples == 50


def test_a_hidden_profile_is_a_volunteer_and_a_managed_trainer_says_so(
    swarm: Swarm, alice: User
) -> None:
    User.objects.filter(username="bob").update(is_profile_public=False)
    managed = peer_make(swarm.run, swarm.coordinator.user, "trainer 1")
    swarm.volunteers.append(managed)
    snapshot_take(swarm)
    peers = live_state(swarm.run)["peers"]
    hidden = peers[swarm.volunteers[0].peer.public_id]
    assert (hidden["name"], hidden["device"]) == ("a volunteer", "")
    assert peers[managed.peer.public_id]["managed"] is True
