"""The page that says whether a machine's work is counted."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import device_make
from tests.factories_runs import Swarm, report_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.contributions.grounds import SuspicionKind
from web.contributions.models import LedgerEntry
from web.contributions.noticing import Found
from web.contributions.services import entry_compensate
from web.contributions.suspicions import suspicions_raise
from web.monitoring.models import Peer

WHY = "/runs/demo/why/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    """bob's two machines, each counted in epoch 0."""
    made = swarm_make(run_make(alice), 2, users=[bob, bob])
    now = timezone.now()
    snapshot_take(made, now, epoch=1, finished_epochs=(report_make(made, 0, now),))
    return made


@pytest.fixture
def page(client: Client, bob: User) -> Client:
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_a_machine_that_is_counted_sees_all_links_hold_and_its_entries(
    page: Client, swarm: Swarm
) -> None:
    text = page.get(WHY).text
    assert text.count('data-ok="yes"') == 12
    assert '<span class="chip" data-tone="ok">Counted</span>' in text
    assert "50 samples of epoch 0 were counted." in text
    assert '<span class="chip" data-tone="ok">Confirmed</span>' in text


def test_the_first_broken_link_is_the_last_and_comes_with_its_remedy(
    page: Client, swarm: Swarm
) -> None:
    Peer.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=9))
    text = page.get(WHY).text
    assert text.count('data-ok="no"') == 1
    assert text.index("The last heartbeat came 9 min ago.") > text.rindex('data-ok="yes"')
    assert "check its network" in text
    assert "A link is broken" in text


def test_what_waits_is_neither_good_nor_broken(page: Client, swarm: Swarm) -> None:
    device = swarm.volunteers[0].device
    LedgerEntry.objects.create(
        run=swarm.run, lineage=1, epoch=7, device=device, user=device.user, samples=9,
        state="provisional", ground="awaiting_witnesses", finished_at=timezone.now(),
        reason="waits for those who averaged with the machine",
    )  # fmt: skip
    text = page.get(f"{WHY}?device={device.public_id}").text
    assert text.count('data-ok="open"') == 1
    assert "Not decided yet" in text
    assert '<span class="chip" data-tone="warn">Provisional</span>' in text
    assert "waits for those who averaged with the machine" in text


def test_a_suspicion_is_told_with_a_remedy(page: Client, swarm: Swarm) -> None:
    device = swarm.volunteers[0].device
    suspicions_raise(swarm.run, [Found(device.pk, SuspicionKind.CLOCK)], timezone.now())
    text = page.get(f"{WHY}?device={device.public_id}").text
    assert "waits for an organiser: its signed reports are dated wrongly" in text
    assert "Set the machine&#x27;s clock by a time server. Nothing is lost." in text


def test_a_correction_is_shown_beside_what_it_corrects(
    page: Client, swarm: Swarm, alice: User
) -> None:
    device = swarm.volunteers[0].device
    entry_compensate(alice, LedgerEntry.objects.get(device=device), -20, "counted twice")
    text = page.get(f"{WHY}?device={device.public_id}").text
    assert "-20" in text
    assert "corrected by an organiser" in text


def test_each_of_ones_machines_can_be_chosen_and_nobody_elses(
    page: Client, swarm: Swarm, charlie: User
) -> None:
    first, second = (v.device for v in swarm.volunteers)
    for device in (first, second):
        text = page.get(f"{WHY}?device={device.public_id}").text
        assert f'<h2 id="chain-title">{device.name}</h2>' in text
        assert text.count("?device=") == 2
    other, _ = device_make(charlie)
    for public_id in (other.public_id, "nonsense"):
        assert page.get(f"{WHY}?device={public_id}").status_code == 404


def test_without_a_machine_in_the_run_the_page_leads_to_joining(
    client: Client, swarm: Swarm, charlie: User
) -> None:
    client.force_login(charlie, backend="django.contrib.auth.backends.ModelBackend")
    text = client.get(WHY).text
    assert "No machine of yours has joined this run" in text
    assert "/runs/demo/join/" in text


def test_my_devices_and_the_strip_of_the_run_lead_here(page: Client, swarm: Swarm) -> None:
    for path in ("/devices/", "/runs/demo/", "/runs/demo/strip/"):
        text = page.get(path).text
        for volunteer in swarm.volunteers:
            assert f"/runs/demo/why/?device={volunteer.device.public_id}" in text
