"""Live states are read from the database once per change, and never when they are old."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.monitoring import live_kept, series_kept
from web.monitoring.live_kept import lives_read
from web.monitoring.models import MetricPoint
from web.monitoring.selectors import live_state
from web.monitoring.series import TIME_METRICS
from web.monitoring.series_kept import run_series_lately
from web.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(alice: User) -> Run:
    live_kept._kept.clear()
    series_kept._kept.clear()
    return run_make(alice)


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_a_state_is_parsed_again_only_when_it_changed(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    swarm, now = swarm_make(run, 2), timezone.now()
    snapshot_take(swarm, now - timedelta(seconds=5), samples_accumulated=10)
    row = fresh(run)
    first = lives_read([row])[run.pk][1]
    with django_assert_num_queries(1) as queries:
        assert lives_read([row])[run.pk][1] is first
    assert '"live"' not in queries[0]["sql"], "the megabytes stay where they are"
    snapshot_take(swarm, now, samples_accumulated=20)
    row = fresh(run)
    with django_assert_num_queries(2):
        second = lives_read([row])[run.pk][1]
    assert (first.figures.samples_accumulated, second.figures.samples_accumulated) == (10, 20)
    assert live_state(run)["samples_accumulated"] == 20


def test_what_a_transaction_saw_and_gave_up_is_not_kept(run: Run) -> None:
    swarm, now = swarm_make(run, 2), timezone.now()
    snapshot_take(swarm, now - timedelta(seconds=5), samples_accumulated=10)
    with transaction.atomic():
        snapshot_take(swarm, now, samples_accumulated=99)
        assert live_state(run)["samples_accumulated"] == 99
        transaction.set_rollback(True)
    assert live_state(run)["samples_accumulated"] == 10


def test_a_kept_state_still_ages(run: Run) -> None:
    now = timezone.now()
    snapshot_take(swarm_make(run, 2), now)
    assert live_state(run, now=now)["state"] != "unknown"
    assert live_state(run, now=now + timedelta(hours=1))["state"] == "unknown"


def test_whoever_changes_a_state_they_read_does_not_change_it_for_others(run: Run) -> None:
    snapshot_take(swarm_make(run, 2))
    live_state(run)["peers"].clear()
    assert len(live_state(run)["peers"]) == 2


def test_a_long_chart_is_drawn_anew_within_a_minute_and_a_short_one_at_once(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = timezone.now()

    def point(age: timedelta) -> None:
        MetricPoint.objects.create(
            run=run, at=now - age, epoch=1, samples_per_second=1, num_peers=1, samples_total=1
        )

    def read(later: float = 0) -> int:
        at = now + timedelta(seconds=later)
        return len(run_series_lately(run, TIME_METRICS, None, 500, at)["t"])

    point(timedelta(seconds=10))
    point(timedelta(seconds=8))
    assert read() == 2
    point(timedelta(seconds=6))
    assert read(1) == 3, "points two seconds apart are read each time"
    point(timedelta(days=30))
    assert read(2) == 4
    point(timedelta(days=29))
    with django_assert_num_queries(0):
        assert read(60) == 4
    assert read(63) == 5
