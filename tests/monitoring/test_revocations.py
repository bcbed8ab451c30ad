"""The revocation list: who is on it, how its number grows, how it travels, who has seen it."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.factories import token_make
from tests.factories_runs import (
    Swarm,
    metrics_make,
    observation_make,
    peer_joined,
    peer_make,
    report_make,
    run_make,
    signed,
    snapshot_take,
    swarm_make,
)
from training.protocol.api import PassRequest
from training.protocol.claims import Revocations
from training.protocol.envelope import verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.names import TYP_METRICS, TYP_REVOCATIONS
from training.protocol.states import PeerState
from web.accounts.credentials import credential_of_token
from web.accounts.devices import device_revoke
from web.accounts.models import Device, User
from web.accounts.services import user_ban, user_unban
from web.contributions.models import LedgerEntry
from web.core.errors import AppError
from web.core.keys import site_key_rotate, site_keys_public
from web.core.models import AuditEntry
from web.monitoring.models import Peer, RetiredPeer, RevocationList
from web.monitoring.selectors import live_state, revocations_spread
from web.monitoring.services import peer_heartbeat
from web.monitoring.services.revocations import (
    LIFETIME,
    RETIRED_KEPT,
    RETIRED_PER_DEVICE,
    peer_id_retire,
    revocations_current,
    revocations_signed,
)
from web.runs.models import Run
from web.runs.services import run_bar_add, run_bar_lift

pytestmark = pytest.mark.django_db


@pytest.fixture
def swarm(alice: User, bob: User, charlie: User) -> Swarm:
    """bob's two machines and charlie's one."""
    return swarm_make(run_make(alice), 3, users=[bob, charlie, bob])


def opened(token: str) -> Revocations:
    return verify(
        token,
        typ=TYP_REVOCATIONS,
        model=Revocations,
        keys=site_keys_public(),
        now=timezone.now(),
    ).body


def listed(run: Run) -> tuple[int, list[str]]:
    now = revocations_current(run)
    return now.seq, now.peer_ids


def ids(swarm: Swarm, *numbers: int) -> list[str]:
    return sorted(swarm.volunteers[number].peer.peer_id for number in numbers)


def test_every_change_of_access_is_a_new_number_and_no_number_changes(
    swarm: Swarm, alice: User, bob: User
) -> None:
    laptop = Device.objects.get(pk=swarm.volunteers[1].device.pk)
    charlie = laptop.user
    steps: list[tuple[Any, list[str]]] = [
        (lambda: user_ban(alice, bob, "spam"), ids(swarm, 0, 2)),
        (lambda: device_revoke(charlie, laptop), ids(swarm, 0, 1, 2)),
        (lambda: user_unban(alice, bob), ids(swarm, 1)),
        (lambda: run_bar_add(alice, swarm.run, bob, "noise"), ids(swarm, 0, 1, 2)),
        (lambda: run_bar_lift(alice, swarm.run, bob), ids(swarm, 1)),
    ]
    assert listed(swarm.run) == (0, [])
    for number, (act, expected) in enumerate(steps, start=1):
        act()
        assert listed(swarm.run) == (number, expected)
    kept = RevocationList.objects.filter(run=swarm.run).order_by("seq")
    assert list(kept.values_list("seq", "peer_ids")) == [
        (0, []),
        *((number, expected) for number, (_, expected) in enumerate(steps, start=1)),
    ]
    audits = AuditEntry.objects.filter(code="run.revocations.changed", target="demo")
    assert [entry.data["seq"] for entry in audits.order_by("pk")] == [1, 2, 3, 4, 5]


def test_a_change_that_changes_nothing_takes_no_number(
    swarm: Swarm, alice: User, bob: User
) -> None:
    user_ban(alice, bob, "spam")
    user_ban(alice, bob, "spam again")
    run_bar_add(alice, swarm.run, bob, "noise")
    assert listed(swarm.run)[0] == 1


def test_a_ban_reaches_the_lists_of_all_runs_that_the_account_was_in(
    swarm: Swarm, alice: User, bob: User
) -> None:
    other, third = run_make(alice, "other"), run_make(alice, "third")
    there = peer_make(other, bob, "laptop")
    user_ban(alice, bob, "spam")
    assert listed(other) == (1, [there.peer.peer_id])
    assert listed(third) == (0, [])


def test_the_database_takes_no_second_list_of_one_number(swarm: Swarm) -> None:
    revocations_current(swarm.run)
    with pytest.raises(IntegrityError), transaction.atomic():
        RevocationList.objects.create(run=swarm.run, seq=0, made_at=timezone.now())


def test_snapshots_and_heartbeats_carry_the_signed_list(
    swarm: Swarm, alice: User, bob: User
) -> None:
    token = token_make(swarm.volunteers[1].device.user, device=swarm.volunteers[1].device)
    user_ban(alice, bob, "spam")
    now = timezone.now()
    answer = peer_heartbeat(credential_of_token(token, now), swarm.run, PassRequest(), now)
    snapshot = snapshot_take(swarm)
    expected = Revocations(run="demo", seq=1, peer_ids=tuple(ids(swarm, 0, 2)))
    assert opened(answer.revocations) == opened(snapshot.revocations) == expected
    assert answer.revocations == snapshot.revocations, "it was signed once"


def test_the_list_is_signed_again_after_half_its_life_or_by_a_new_key(swarm: Swarm) -> None:
    now = timezone.now()
    first = revocations_signed(revocations_current(swarm.run), now)
    half = now + LIFETIME / 2
    assert revocations_signed(revocations_current(swarm.run), half - timedelta(seconds=1)) == first
    assert revocations_signed(revocations_current(swarm.run), half) != first
    before = revocations_signed(revocations_current(swarm.run), half)
    site_key_rotate()
    after = revocations_signed(revocations_current(swarm.run), half)
    assert after != before
    assert opened(after) == opened(first)


def test_what_no_service_told_is_on_the_list_with_the_next_snapshot(
    swarm: Swarm, bob: User
) -> None:
    snapshot_take(swarm)
    User.objects.filter(pk=bob.pk).update(banned_at=timezone.now())
    assert opened(snapshot_take(swarm).revocations).peer_ids == tuple(ids(swarm, 0, 2))


def test_the_page_shows_who_was_banned_before_the_next_snapshot(
    swarm: Swarm, alice: User, bob: User
) -> None:
    snapshot_take(swarm)
    user_ban(alice, bob, "spam")
    peers = live_state(swarm.run)["peers"]
    states = {v.peer.public_id: peers[v.peer.public_id]["state"] for v in swarm.volunteers}
    assert sorted(states.values()) == ["banned", "banned", "training"]
    kinds = swarm.run.events.values_list("kind", flat=True)
    assert list(kinds).count("peer.banned") == 2
    snapshot_take(swarm)
    assert list(swarm.run.events.values_list("kind", flat=True)).count("peer.banned") == 2


def heartbeat_code(swarm: Swarm, token: str) -> tuple[ErrorCode, str]:
    now = timezone.now()
    with pytest.raises(AppError) as error:
        peer_heartbeat(credential_of_token(token, now), swarm.run, PassRequest(), now)
    assert error.value.status == 403
    assert error.value.remedy
    return error.value.code, error.value.detail


def test_heartbeats_of_the_banned_the_barred_and_the_revoked_are_refused_with_the_reason(
    swarm: Swarm, alice: User, bob: User
) -> None:
    volunteer = swarm.volunteers[0]
    token = token_make(bob, device=volunteer.device)
    run_bar_add(alice, swarm.run, bob, "noise")
    barred = (ErrorCode.BARRED, "You are barred from this run: noise")
    assert heartbeat_code(swarm, token) == barred
    run_bar_lift(alice, swarm.run, bob)
    user_ban(alice, bob, "spam")
    banned = (ErrorCode.BANNED, "This account is suspended: spam")
    assert heartbeat_code(swarm, token) == banned
    user_unban(alice, bob)
    token = token_make(bob, device=volunteer.device)
    device_revoke(bob, Device.objects.get(pk=volunteer.device.pk))
    assert heartbeat_code(swarm, token)[0] == ErrorCode.DEVICE_REVOKED


def test_a_barred_person_cannot_join_and_can_again_when_let_in(
    swarm: Swarm, alice: User, bob: User
) -> None:
    run_bar_add(alice, swarm.run, bob, "noise")
    with pytest.raises(AppError) as error:
        peer_joined(swarm.run, bob, key_generate(), 0)
    assert (error.value.code, error.value.status) == (ErrorCode.BARRED, 403)
    run_bar_lift(alice, swarm.run, bob)
    assert peer_joined(swarm.run, bob, key_generate(), 0)


def test_a_swarm_key_that_was_replaced_is_on_the_list_until_it_is_used_again(
    swarm: Swarm, bob: User
) -> None:
    device = key_generate()
    old = peer_joined(swarm.run, bob, device, 0)[0].peer_id
    assert listed(swarm.run) == (0, [])
    new = peer_joined(swarm.run, bob, device, 1)[0].peer_id
    assert listed(swarm.run) == (1, [old])
    peer_joined(swarm.run, bob, device, 0)
    assert listed(swarm.run) == (2, [new])


def test_a_device_that_comes_back_leaves_the_lists_of_all_its_runs(
    swarm: Swarm, alice: User, bob: User
) -> None:
    other = run_make(alice, "other")
    key = key_generate()
    peer, _ = peer_joined(swarm.run, bob, key, 0)
    peer_make(other, bob, "there")
    Peer.objects.filter(run=other).update(device=peer.device)
    device_revoke(bob, peer.device)
    assert (listed(swarm.run)[0], listed(other)[0]) == (1, 1)
    peer_joined(swarm.run, bob, key, 0)
    assert (listed(swarm.run), listed(other)) == ((2, []), (2, []))


def test_identities_given_up_are_few_and_forgotten_in_time(swarm: Swarm, bob: User) -> None:
    device, now = swarm.volunteers[0].device, timezone.now()
    for number in range(RETIRED_PER_DEVICE + 5):
        peer_id_retire(swarm.run, device, f"Qm{number}", now - timedelta(seconds=60 - number))
    kept = set(RetiredPeer.objects.values_list("peer_id", flat=True))
    assert len(kept) == RETIRED_PER_DEVICE
    assert "Qm0" not in kept
    snapshot_take(swarm)
    assert len(listed(swarm.run)[1]) == RETIRED_PER_DEVICE
    RetiredPeer.objects.update(retired_at=now - RETIRED_KEPT)
    snapshot_take(swarm)
    assert listed(swarm.run) == (2, [])


def test_the_desk_counts_who_has_seen_the_list_by_their_own_signed_word(
    swarm: Swarm, alice: User
) -> None:
    mallory = swarm.volunteers[1].device.user
    snapshot_take(swarm)
    assert revocations_spread(swarm.run).num_seen == 3, "an empty list is known to everybody"
    user_ban(alice, mallory, "spam")
    before = revocations_spread(swarm.run)
    assert (before.num_seen, before.num_peers) == (0, 2), "the banned one is not asked"
    made_at = RevocationList.objects.get(seq=1).made_at
    assert [late.since for late in before.late] == [made_at, made_at]
    now = timezone.now()
    first = observation_make(swarm.volunteers[0], now, revocations_seq=1)
    forged = observation_make(
        swarm.volunteers[2],
        now,
        jws=signed(
            metrics_make(swarm.volunteers[2], now, revocations_seq=1),
            TYP_METRICS,
            key_generate(),
            now,
        ),
    )
    snapshot_take(swarm, now, peers=(first, forged))
    spread = revocations_spread(swarm.run)
    assert (spread.num_seen, spread.num_peers) == (1, 1)
    assert Peer.objects.get(pk=swarm.volunteers[2].peer.pk).revocations_seq == 0
    later = now + timedelta(seconds=2)
    peers = (first, observation_make(swarm.volunteers[2], later, revocations_seq=0))
    snapshot_take(swarm, later, peers=peers)
    late = revocations_spread(swarm.run)
    assert (late.num_seen, late.num_peers) == (1, 2)
    assert [row.peer.pk for row in late.late] == [swarm.volunteers[2].peer.pk]


def test_the_time_until_all_have_seen_the_list_is_kept(
    swarm: Swarm, alice: User, bob: User
) -> None:
    snapshot_take(swarm)
    user_ban(alice, bob, "spam")
    snapshot_take(swarm)
    assert revocations_spread(swarm.run).seconds is None
    now = RevocationList.objects.get(seq=1).made_at + timedelta(seconds=4)
    peers = (observation_make(swarm.volunteers[1], now, revocations_seq=1),)
    snapshot_take(swarm, now, peers=peers)
    assert revocations_spread(swarm.run).seconds == 4.0


def test_numbers_of_lists_are_for_organisers_only(swarm: Swarm, alice: User, bob: User) -> None:
    user_ban(alice, bob, "spam")
    snapshot_take(swarm)
    assert "revocations" not in str(live_state(swarm.run))


def test_a_barred_persons_work_is_rejected_and_says_why(
    swarm: Swarm, alice: User, bob: User
) -> None:
    run_bar_add(alice, swarm.run, bob, "noise")
    now = timezone.now()
    snapshot_take(swarm, now, epoch=1, finished_epochs=(report_make(swarm, 0, now),))
    rejected = LedgerEntry.objects.filter(state="rejected")
    assert {entry.user.username for entry in rejected} == {"bob"}
    assert {entry.reason for entry in rejected} == {"this account is barred from the run"}
    assert live_state(swarm.run)["peers"][swarm.volunteers[0].peer.public_id]["state"] == (
        PeerState.BANNED
    )
