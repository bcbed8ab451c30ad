"""Why was I not counted?"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import device_make
from tests.factories_runs import (
    Swarm,
    config_publish,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from web.accounts.models import Device, User
from web.contributions.grounds import Ground, SuspicionKind
from web.contributions.models import LedgerEntry
from web.contributions.noticing import Found
from web.contributions.suspicions import suspicions_raise
from web.monitoring.models import EpochRecord, Peer, RunSwarm
from web.monitoring.selectors import why_chain
from web.runs.models import Run
from web.runs.services import run_transition

pytestmark = pytest.mark.django_db


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    made = swarm_make(run_make(alice), 1, users=[bob])
    now = timezone.now()
    snapshot_take(made, now, epoch=1, finished_epochs=(report_make(made, 0, now),))
    return made


def test_all_links_hold_for_a_trainer_that_is_counted(swarm: Swarm) -> None:
    chain = why_chain(swarm.run, swarm.volunteers[0].device)
    assert [link.step for link in chain] == [
        "account", "joined", "run", "version", "heartbeat", "coordinator", "swarm", "key", "config",
        "averaged", "plausible", "counted",
    ]  # fmt: skip
    assert all(link.ok and not link.remedy for link in chain)
    assert chain[-1].text == "50 samples of epoch 0 were counted."


def _ban(swarm: Swarm) -> None:
    User.objects.filter(username="bob").update(banned_at=timezone.now())


def _revoke(swarm: Swarm) -> None:
    Device.objects.filter(pk=swarm.volunteers[0].device.pk).update(revoked_at=timezone.now())


def _unjoin(swarm: Swarm) -> None:
    Peer.objects.filter(pk=swarm.volunteers[0].peer.pk).delete()


def _pause(swarm: Swarm) -> None:
    run_transition(swarm.run.organiser, swarm.run, "pause", "lunch")


def _outdate(swarm: Swarm) -> None:
    config_publish(swarm.run, min_trainer_version="9.0")


def _silence(swarm: Swarm) -> None:
    Peer.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=3))


def _never(swarm: Swarm) -> None:
    Peer.objects.update(heartbeat_at=None)


def _coordinator_away(swarm: Swarm) -> None:
    RunSwarm.objects.update(received_at=timezone.now() - timedelta(minutes=5))


def _unseen(swarm: Swarm) -> None:
    Peer.objects.update(seen_at=None)
    RunSwarm.objects.update(live={})


def _unsigned(swarm: Swarm) -> None:
    """The coordinator shows it, and no signature of its device was good for long."""
    Peer.objects.update(seen_at=timezone.now() - timedelta(minutes=2))


def _stay_behind(swarm: Swarm) -> None:
    Peer.objects.update(lineage=9)


def _miss_epochs(swarm: Swarm) -> None:
    now = timezone.now()
    for epoch in range(1, 4):
        EpochRecord.objects.create(run=swarm.run, lineage=1, epoch=epoch, finished_at=now)


def _suspect(swarm: Swarm) -> None:
    found = Found(swarm.volunteers[0].device.pk, SuspicionKind.CLOCK)
    suspicions_raise(swarm.run, [found], timezone.now())


@pytest.mark.parametrize(
    ("break_it", "step", "text"),
    [
        (_ban, "account", "Nothing is counted: this account is suspended."),
        (_revoke, "account", "Nothing is counted: this device was revoked."),
        (_unjoin, "joined", "This machine has not joined the run."),
        (_pause, "run", "The run was paused by alice: lunch."),
        (_outdate, "version", "The trainer is too old: 0.1.0, 9.0 is needed."),
        (_silence, "heartbeat", "The last heartbeat came 3 min ago."),
        (_never, "heartbeat", "The last heartbeat came never."),
        (_coordinator_away, "coordinator", "The coordinator was last heard 5 min ago."),
        (_unseen, "swarm", "The coordinator saw its records never."),
        (
            _unsigned,
            "key",
            "Its records are not signed with the key that is bound to bob, or are too old.",
        ),
        (
            _stay_behind,
            "config",
            "It trains by an old config of the run, which has a new lineage, 1, now.",
        ),
        (_miss_epochs, "averaged", "3 epochs finished without it."),
        (
            _suspect,
            "plausible",
            "Its new work waits for an organiser: its signed reports are dated wrongly.",
        ),
    ],
)
def test_the_chain_stops_at_the_first_broken_link(
    swarm: Swarm, break_it: Callable[[Swarm], None], step: str, text: str
) -> None:
    break_it(swarm)
    run = Run.objects.get()
    chain = why_chain(run, Device.objects.get(pk=swarm.volunteers[0].device.pk))
    *held, broken = chain
    assert all(link.ok for link in held)
    assert (broken.step, broken.ok, broken.text) == (step, False, text)
    assert broken.remedy


def test_before_the_first_epoch_nothing_can_be_told(alice: User, bob: User) -> None:
    swarm = swarm_make(run_make(alice), 1, users=[bob])
    snapshot_take(swarm)
    last = why_chain(swarm.run, swarm.volunteers[0].device)[-1]
    assert (last.step, last.ok, last.text) == (
        "averaged", None, "No epoch has finished since it joined.",
    )  # fmt: skip
    assert last.remedy


@pytest.mark.parametrize(
    ("ground", "state", "step", "text"),
    [
        (Ground.NOT_IN_GROUP, "provisional", "averaged", "are provisional: why"),
        (Ground.NOT_IN_GROUP, "rejected", "averaged", "were not counted: why"),
        (Ground.DISCARDED, "rejected", "averaged", "were not counted: why"),
        (Ground.AWAITING_WITNESSES, "provisional", "averaged", "are provisional: why"),
        (Ground.QUARANTINED, "provisional", "plausible", "are provisional: why"),
        (Ground.IMPLAUSIBLE, "rejected", "plausible", "were not counted: why"),
        (Ground.DECIDED, "rejected", "counted", "were not counted: why"),
        (Ground.BARRED, "rejected", "counted", "were not counted: why"),
        (Ground.UNWITNESSED, "confirmed", "counted", "were counted: why"),
        (Ground.PROVEN, "confirmed", "counted", "were counted"),
    ],
)
def test_the_newest_entry_says_which_link_does_not_hold(
    swarm: Swarm, ground: Ground, state: str, step: str, text: str
) -> None:
    device = swarm.volunteers[0].device
    LedgerEntry.objects.create(
        run=swarm.run, lineage=1, epoch=7, device=device, user=device.user, samples=1234,
        state=state, ground=ground, reason="why" if ground else "", finished_at=timezone.now(),
    )  # fmt: skip
    last = why_chain(swarm.run, device)[-1]
    ok = {"provisional": None, "rejected": False, "confirmed": True}[state]
    assert (last.step, last.ok, last.text) == (step, ok, f"1,234 samples of epoch 7 {text}.")
    assert bool(last.remedy) == (ok is not True)


def test_what_was_provisional_is_told_by_its_settlement(swarm: Swarm) -> None:
    device = swarm.volunteers[0].device
    given = {"run": swarm.run, "lineage": 1, "epoch": 7, "device": device, "user": device.user}
    given |= {"samples": 5, "finished_at": timezone.now()}
    first = LedgerEntry.objects.create(state="provisional", ground=Ground.UNSIGNED, **given)
    LedgerEntry.objects.create(state="confirmed", settles=first, **given)
    assert why_chain(swarm.run, device)[-1].text == "5 samples of epoch 7 were counted."


def test_a_stranger_has_not_joined(swarm: Swarm, charlie: User) -> None:
    device, _ = device_make(charlie)
    assert why_chain(swarm.run, device)[-1].step == "joined"
