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
from web.monitoring.models import Peer, RunSwarm
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
        "account", "joined", "run", "version", "heartbeat", "coordinator", "swarm", "counted",
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
        (_unseen, "swarm", "The coordinator saw its signed records never."),
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


def test_before_the_first_epoch_nothing_is_counted_yet(alice: User, bob: User) -> None:
    swarm = swarm_make(run_make(alice), 1, users=[bob])
    snapshot_take(swarm)
    assert why_chain(swarm.run, swarm.volunteers[0].device)[-1].text == (
        "No finished epoch has counted it yet."
    )


def test_what_was_rejected_says_why(swarm: Swarm) -> None:
    _ban(swarm)
    now = timezone.now()
    snapshot_take(swarm, now, epoch=2, finished_epochs=(report_make(swarm, 1, now),))
    User.objects.update(banned_at=None)
    snapshot_take(swarm)
    broken = why_chain(swarm.run, Device.objects.get(pk=swarm.volunteers[0].device.pk))[-1]
    assert broken.text == "50 samples of epoch 1 were not counted: this account is suspended."


def test_a_stranger_has_not_joined(swarm: Swarm, charlie: User) -> None:
    device, _ = device_make(charlie)
    assert why_chain(swarm.run, device)[-1].step == "joined"
