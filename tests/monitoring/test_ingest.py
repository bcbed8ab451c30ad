"""Snapshots: taken in once, whole, and only from the run's coordinator."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    config_publish,
    draft_make,
    report_make,
    run_make,
    snapshot_make,
    snapshot_sign,
    snapshot_take,
    swarm_make,
)
from training.protocol.states import RunState
from web.accounts.models import User
from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.events import live_ring_since, live_state_read
from web.core.templatetags.ui import instant
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.livestate import state_apply
from web.monitoring.models import EpochRecord, MetricPoint, Peer, RunEvent, RunSwarm
from web.monitoring.selectors import live_state

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 2, users=[bob])


def test_samples_stay_in_the_sum_between_an_epochs_end_and_its_report(swarm: Swarm) -> None:
    now = timezone.now()

    def shown() -> int:
        state = live_state(swarm.run, now=now)
        return sum(state[f"samples_{name}"] for name in ("total", "pending", "accumulated"))

    snapshot_take(swarm, now - timedelta(seconds=9), samples_accumulated=90)
    assert shown() == 90
    snapshot_take(swarm, now - timedelta(seconds=6), epoch=1, samples_accumulated=5)
    assert shown() == 95
    snapshot_take(swarm, now - timedelta(seconds=3), epoch=1, samples_accumulated=7)
    assert shown() == 97
    reports = (report_make(swarm, 0, now),)
    snapshot_take(swarm, now, epoch=1, samples_accumulated=9, finished_epochs=reports)
    assert (shown(), live_state(swarm.run, now=now)["samples_pending"]) == (109, 0)


def test_a_loss_keeps_its_own_date_and_is_no_measurement_of_later_reports(swarm: Swarm) -> None:
    now = timezone.now()
    first = now - timedelta(seconds=30)
    snapshot_take(swarm, first, samples_accumulated=9, loss=2.5)
    snapshot_take(swarm, now, samples_accumulated=9, loss=None)

    state = live_state(swarm.run, now=now)
    assert state["loss"] == 2.5
    assert instant(state["loss_at"]) == first
    assert instant(state["as_of"]) == now
    points = MetricPoint.objects.filter(run=swarm.run).order_by("at")
    assert list(points.values_list("loss", flat=True)) == [2.5, None]
    moments = swarm.run.moments.order_by("at")
    assert list(moments.values_list("loss", flat=True)) == [2.5, None]


def test_a_snapshot_becomes_live_state_history_ledger_and_messages(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now - timedelta(seconds=20))
    answer = snapshot_take(swarm, now, epoch=1, finished_epochs=(report_make(swarm, 0, now),))

    assert (answer.accepted, answer.last_seq, answer.last_epoch) == (True, 2, 0)
    state = live_state(swarm.run, now=now)
    assert state["state"] == "training"
    assert state["reason"] == "training: epoch 1, 2 peers, 20 % of the batch"
    assert (state["samples_total"], state["num_peers"], state["first_loss"]) == (100, 2, 2.0)
    peer = state["peers"][swarm.volunteers[0].peer.public_id]
    assert (peer["name"], peer["device"], peer["verified"]) == ("bob", "machine 0", True)
    record = EpochRecord.objects.get()
    assert (record.samples, record.num_peers, record.loss) == (100, 2, 2.0)
    assert record.seconds == pytest.approx(20, abs=1)
    assert list(LedgerEntry.objects.values_list("samples", "state")) == [(50, "confirmed")] * 2
    total = ContributionTotal.objects.get()
    assert (total.user.username, total.samples, total.epochs) == ("bob", 100, 2)
    assert MetricPoint.objects.count() == 2
    kinds = list(RunEvent.objects.order_by("seq").values_list("kind", flat=True))
    assert kinds[-3:] == ["peer.joined", "peer.joined", "epoch.finished"]
    swarm.volunteers[0].peer.refresh_from_db()
    assert swarm.volunteers[0].peer.seen_at == now
    assert Peer.objects.get(device=RunSwarm.objects.get().coordinator).seen_at == now


def test_the_messages_of_every_snapshot_lead_to_the_stored_state(swarm: Swarm) -> None:
    now = timezone.now()
    snapshot_take(swarm, now - timedelta(seconds=400))
    state = live_state_read("demo")
    assert state is not None
    for age, changes in ((300, {}), (200, {"peers": ()}), (90, {"loss": None}), (0, {"epoch": 3})):
        since = state["seq"]
        snapshot_take(swarm, now - timedelta(seconds=age), **changes)
        messages = live_ring_since("demo", since)
        assert messages is not None
        assert [m["seq"] for m in messages] == list(range(since + 1, since + 1 + len(messages)))
        for message in messages:
            state = state_apply(state, message.get("patch", {}))
        assert state == live_state_read("demo") == RunSwarm.objects.get().live


@pytest.mark.parametrize("seq", [1, 5, 6])
def test_a_known_or_older_number_is_ignored(swarm: Swarm, seq: int) -> None:
    now = timezone.now()
    swarm.seq = 5
    snapshot_take(swarm, now - timedelta(seconds=2))
    before = RunSwarm.objects.get().live
    report = report_make(swarm, 0, now)

    answer = snapshot_take(swarm, now, seq=seq, epoch=9, finished_epochs=(report,))

    assert (answer.accepted, answer.last_seq, answer.last_epoch) == (False, 6, None)
    assert RunSwarm.objects.get().live == before
    assert not LedgerEntry.objects.exists()


def test_an_epoch_that_is_reported_again_adds_nothing(swarm: Swarm) -> None:
    now = timezone.now()
    reports = tuple(report_make(swarm, epoch, now) for epoch in range(3))
    snapshot_take(swarm, now, epoch=3, finished_epochs=reports)
    answer = snapshot_take(swarm, now, epoch=3, finished_epochs=reports)

    assert answer.last_epoch == 2
    assert LedgerEntry.objects.count() == 6
    assert EpochRecord.objects.count() == 3
    assert live_state(swarm.run)["samples_total"] == 300


def test_the_run_finishes_at_its_last_epoch(alice: User, bob: User) -> None:
    swarm = swarm_make(run_make(alice, draft=draft_make(max_epochs=5)), 1, users=[bob])
    now = timezone.now()
    assert snapshot_take(swarm, now, epoch=4).state == RunState.OPEN
    assert snapshot_take(swarm, now, epoch=5).state == RunState.FINISHING
    assert live_state(swarm.run)["reason"] == (
        "finishing: 1 trainer still to leave; finished: 5 epochs are done"
    )
    later = now + timedelta(seconds=150)
    assert snapshot_take(swarm, later, epoch=5, peers=()).state == RunState.FINISHED
    assert live_state(swarm.run)["reason"] == "finished: 5 epochs are done"


def test_a_coordinator_that_has_not_seen_the_new_lineage_still_reports_its_past(
    swarm: Swarm,
) -> None:
    now = timezone.now()
    snapshot_take(swarm, now)
    config_publish(swarm.run, task={"name": "tiny", "params": {"hidden": 9}})
    before = RunSwarm.objects.get().live

    answer = snapshot_take(swarm, now, epoch=7, finished_epochs=(report_make(swarm, 6, now),))

    assert (answer.accepted, answer.config_version, answer.last_epoch) == (True, 2, 6)
    assert LedgerEntry.objects.filter(lineage=1, epoch=6).count() == 2
    assert RunSwarm.objects.get().live == before


@pytest.mark.parametrize("n_peers", [5, 60])
def test_the_number_of_queries_does_not_depend_on_the_number_of_peers(
    alice: User, django_assert_num_queries: Any, n_peers: int
) -> None:
    swarm = swarm_make(run_make(alice), n_peers)
    now = timezone.now()
    report = report_make(swarm, 0, now)
    jws = snapshot_sign(swarm, snapshot_make(swarm, now, epoch=1, finished_epochs=(report,)), now)
    credential = swarm.credential

    # Eight of them for the revocation list, of which three only while it is new; eight for the
    # evidence and what is noticed in it; one for the moment that is kept for the replay.
    with django_assert_num_queries(40):
        snapshot_ingest(credential, swarm.run, jws, now)


def test_two_hundred_peers_and_ten_epochs_fit_in_one_snapshot(alice: User) -> None:
    swarm = swarm_make(run_make(alice), 200)
    now = timezone.now()
    reports = tuple(report_make(swarm, epoch, now) for epoch in range(10))
    snapshot_take(swarm, now, epoch=10, finished_epochs=reports)

    assert LedgerEntry.objects.count() == 2000
    assert live_state(swarm.run)["num_peers"] == 200
