"""An auxiliary peer as the site sees it: in the tables, in no sum, in no ledger."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    observation_make,
    peer_make,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from training.protocol.metrics import EpochSamples
from training.protocol.states import Role
from web.accounts.models import User
from web.contributions.models import LedgerEntry
from web.monitoring.selectors import live_state

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 2, users=[bob])


def test_it_is_shown_with_its_role_and_counts_among_no_trainers(
    swarm: Swarm, charlie: User, client: Client
) -> None:
    now = timezone.now()
    helper = peer_make(swarm.run, charlie, "helper", role=Role.AUXILIARY)
    trainers = [observation_make(one, now, epoch=1) for one in swarm.volunteers]
    nothing = {"samples_accumulated": 0, "samples_total": 0, "samples_per_second": 0.0}
    silent = observation_make(helper, now, role=Role.AUXILIARY, epoch=1, loss=None, **nothing)
    snapshot_take(swarm, now, epoch=1, peers=(*trainers, silent))
    state = live_state(swarm.run, now=now)
    peer = state["peers"][helper.peer.public_id]
    assert (peer["role"], peer["state"], peer["verified"]) == ("auxiliary", "training", True)
    assert state["num_peers"] == 2, "trainers"
    assert 'data-cell="role">auxiliary<' in client.get("/runs/demo/").text


def test_whatever_it_states_nothing_is_credited_to_it(swarm: Swarm, charlie: User) -> None:
    now = timezone.now()
    helper = peer_make(swarm.run, charlie, "helper", role=Role.AUXILIARY)
    snapshot_take(swarm, now, epoch=1, finished_epochs=(report_make(swarm, 0, now),))
    boast = {"recent": (EpochSamples(epoch=0, samples=400),), "samples_total": 400}
    seen = observation_make(helper, now, role=Role.AUXILIARY, epoch=1, **boast)
    snapshot_take(swarm, now, epoch=1, peers=(seen,))
    assert set(LedgerEntry.objects.values_list("user__username", flat=True)) == {"bob"}
