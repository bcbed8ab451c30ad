"""What the check of a draft is told of today's machines."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories_runs import run_make, snapshot_take, swarm_make
from training.protocol.config import RunConfig
from web.accounts.models import User
from web.monitoring.fleet import situation_of
from web.monitoring.models import Peer
from web.runs.findings import Fleet
from web.runs.models import Run
from web.runs.selectors import config_current

pytestmark = pytest.mark.django_db


def fleet_of(run: Run) -> Fleet:
    config = RunConfig.model_validate(config_current(run).body)
    return situation_of(run, config, timezone.now()).fleet


def test_the_newest_row_of_a_device_counts(alice: User) -> None:
    swarm, new = swarm_make(run_make(alice)), run_make(alice, "new")
    peer, now = Peer.objects.filter(role="trainer")[0], timezone.now()
    Peer.objects.exclude(pk=peer.pk).delete()
    for name, hours, memory, version in (("older", 2, 2, "0.0.1"), ("newer", 0, 8, "9.0.0")):
        peer.pk, peer.run, peer.public_id = None, run_make(alice, name), name
        peer.peer_id, peer.key_thumbprint, peer.trainer_version = name, name, version
        peer.heartbeat_at, peer.hardware = now - timedelta(hours=hours), {"memory_bytes": memory}
        peer.save()
    Peer.objects.filter(run=swarm.run).delete()
    fleet = fleet_of(new)
    assert (fleet.num_devices, fleet.memory_bytes, fleet.num_outdated) == (1, (8,), 0)


def test_a_run_without_machines_is_told_of_the_sites(alice: User) -> None:
    new = run_make(alice, "new")
    assert fleet_of(new).site_samples_per_second == 0
    busy = run_make(alice, "busy")
    snapshot_take(swarm_make(busy))
    fleet = fleet_of(new)
    assert (fleet.is_of_run, fleet.num_site_trainers) == (False, 2)
    own = fleet_of(busy)
    assert fleet.site_samples_per_second == pytest.approx(own.samples_per_second)
    assert (own.is_of_run, own.site_samples_per_second) == (True, 0)
    Run.objects.filter(pk=busy.pk).update(is_public=False)
    assert fleet_of(new).num_site_trainers == 0
