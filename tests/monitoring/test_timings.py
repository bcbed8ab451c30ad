"""What the site makes of how trainers say they spent their epochs."""

from typing import Any

import pytest
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    observation_make,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from training.protocol.metrics import EpochTiming
from web.accounts.models import User
from web.monitoring.models import EpochRecord
from web.monitoring.series import run_series_by_epoch

pytestmark = pytest.mark.django_db


def timing(epoch: int, computing: float = 8.0, **fields: Any) -> EpochTiming:
    given = {"matchmaking": 1.0, "averaging": 2.0, "waiting": 1.0, "group_size": 2}
    return EpochTiming(epoch=epoch, computing=computing, **(given | fields))


@pytest.fixture
def swarm(alice: User) -> Swarm:
    return swarm_make(run_make(alice), 2)


def tell(swarm: Swarm, *timings: tuple[EpochTiming, ...], epochs: int = 1) -> None:
    """Ingest a snapshot in which each trainer in turn tells its timings."""
    now = timezone.now()
    peers = tuple(
        observation_make(v, now, epoch=epochs, timings=told)
        for v, told in zip(swarm.volunteers, timings, strict=False)
    )
    reports = tuple(report_make(swarm, epoch, now) for epoch in range(epochs))
    snapshot_take(swarm, now, epoch=epochs, peers=peers, finished_epochs=reports)


def test_an_epoch_holds_the_mean_of_its_trainers(swarm: Swarm) -> None:
    tell(swarm, (timing(0, 8.0),), (timing(0, 4.0, group_size=0),))
    record = EpochRecord.objects.get()
    assert (record.num_timed, record.num_averaged) == (2, 1)
    assert (record.computing_seconds, record.averaging_seconds) == (6.0, 2.0)
    found = run_series_by_epoch(swarm.run, ["averaged_share", "waiting_seconds", "num_timed"])
    assert found == {
        "epoch": [0], "averaged_share": [0.5], "waiting_seconds": [1.0], "num_timed": [2],
    }  # fmt: skip


def test_a_report_that_comes_again_counts_once_and_a_trainer_that_left_stays(swarm: Swarm) -> None:
    tell(swarm, (timing(0, 8.0),), (timing(0, 4.0),))
    tell(swarm, (timing(0, 8.0), timing(0, 99.0)))
    record = EpochRecord.objects.get()
    assert (record.num_timed, record.computing_seconds) == (2, 6.0)


def test_a_late_report_completes_an_epoch(swarm: Swarm) -> None:
    tell(swarm, (timing(0, 8.0),))
    assert EpochRecord.objects.get().num_timed == 1
    tell(swarm, (timing(0, 8.0),), (timing(0, 4.0),))
    assert EpochRecord.objects.get().num_timed == 2


def test_trainers_that_do_not_say_leave_a_gap_not_a_zero(swarm: Swarm) -> None:
    tell(swarm, (), ())
    record = EpochRecord.objects.get()
    assert (record.num_timed, record.computing_seconds) == (0, None)
    found = run_series_by_epoch(swarm.run, ["averaged_share", "computing_seconds"])
    assert (found["averaged_share"], found["computing_seconds"]) == ([None], [None])


def test_an_absurd_report_does_not_move_the_mean(swarm: Swarm) -> None:
    tell(swarm, (timing(0, 80_000.0),), (timing(0, 4.0),))
    record = EpochRecord.objects.get()
    assert (record.num_timed, record.computing_seconds) == (2, 4.0)


def test_an_epoch_that_never_finished_is_not_invented(swarm: Swarm) -> None:
    tell(swarm, (timing(77),), (timing(5),))
    assert list(EpochRecord.objects.values_list("epoch", "num_timed")) == [(0, 0)]
