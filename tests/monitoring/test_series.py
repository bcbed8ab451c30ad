"""History as columns, thinned by the database."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.monitoring.models import EpochRecord, MetricPoint, RunEvent
from web.monitoring.retention import points_prune, points_rollup
from web.monitoring.selectors import run_series
from web.monitoring.series import (
    run_epochs_newest,
    run_lineages,
    run_series_by_epoch,
    run_series_by_lineage,
)
from web.monitoring.tasks import points_prune_task, points_rollup_task
from web.runs.models import Run

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def points_add(run: Run, count: int, *, every: float = 2.0, start: datetime = START) -> None:
    MetricPoint.objects.bulk_create(
        MetricPoint(
            run=run,
            at=start + timedelta(seconds=i * every),
            epoch=i // 10,
            loss=None if i % 50 == 0 else 8.0 - i / count,
            samples_per_second=500.0 if i == count // 3 else 10.0,
            num_peers=2,
            samples_total=i * 10,
        )
        for i in range(count)
    )


def test_few_points_are_answered_as_they_are(run: Run) -> None:
    points_add(run, 3)
    series = run_series(run, ["loss", "num_peers"])
    assert series["t"] == [START.timestamp() + s for s in (0, 2, 4)]
    assert series["num_peers"] == [2, 2, 2]
    assert series["loss"][0] is None
    assert set(series) == {"t", "loss", "num_peers"}


def test_nothing_is_an_empty_column(run: Run) -> None:
    assert run_series(run, ["loss"]) == {"t": [], "loss": []}
    assert run_series_by_epoch(run, ["loss"]) == {"epoch": [], "loss": []}


def test_extremes_survive_thinning(run: Run) -> None:
    points_add(run, 3000)
    series = run_series(run, ["loss", "samples_per_second", "epoch"], points=100)
    assert len(series["t"]) <= 100
    assert len({len(column) for column in series.values()}) == 1
    assert max(series["samples_per_second"]) == 500.0
    losses = [v for v in series["loss"] if v is not None]
    assert (max(losses), min(losses)) == (8.0 - 1 / 3000, 8.0 - 2999 / 3000)
    assert series["t"] == sorted(series["t"])
    assert (series["t"][0], series["t"][-1]) == (START.timestamp(), START.timestamp() + 5998)


def test_a_window_is_cut_out(run: Run) -> None:
    points_add(run, 10)
    start, end = START + timedelta(seconds=4), START + timedelta(seconds=8)
    assert len(run_series(run, ["loss"], start, end)["t"]) == 3


def test_unknown_metrics_are_refused(run: Run) -> None:
    for call in (run_series, run_series_by_epoch):
        with pytest.raises(AppError) as error:
            call(run, ["loss", "address"])
        assert error.value.code == ErrorCode.BODY_INVALID


def test_the_history_of_epochs_is_that_of_the_newest_lineage(run: Run) -> None:
    EpochRecord.objects.bulk_create(
        EpochRecord(
            run=run, lineage=lineage, epoch=epoch, finished_at=START, seconds=epoch % 2 * 10,
            samples=100, num_peers=2, loss=9.0 - epoch / 100,
        )
        for lineage, count in ((1, 50), (2, 700))
        for epoch in range(count)
    )  # fmt: skip
    whole = run_series_by_epoch(run, ["loss", "samples_per_second"], 1000)
    assert whole["epoch"] == list(range(700))
    assert whole["samples_per_second"][:2] == [None, 10.0]
    thin = run_series_by_epoch(run, ["loss"], 101)
    assert len(thin["epoch"]) <= 101
    assert (thin["epoch"][0], thin["epoch"][-1]) == (0, 699)
    assert (max(thin["loss"]), min(thin["loss"])) == (9.0, 9.0 - 6.99)
    assert len(run_series_by_epoch(run, ["loss"], lineage=1)["epoch"]) == 50


def test_after_a_roll_back_every_lineage_is_told(run: Run) -> None:
    EpochRecord.objects.bulk_create(
        EpochRecord(run=run, lineage=lineage, epoch=epoch, finished_at=START, loss=lineage * 10)
        for lineage, epochs in ((1, range(600)), (2, range(400, 700)))
        for epoch in epochs
    )
    assert run_lineages(run) == [2, 1]
    whole = run_series_by_lineage(run, ["loss"], 2000)
    assert whole["lineage"] == [1] * 600 + [2] * 300
    assert whole["epoch"] == [*range(600), *range(400, 700)]
    assert set(whole["loss"][:600]) == {10.0}
    thin = run_series_by_lineage(run, ["loss"], 100)
    assert len(thin["epoch"]) <= 100
    assert {1, 2} == set(thin["lineage"])
    part = run_series_by_lineage(run, ["loss"], first=500, last=599)
    assert part["epoch"] == [*range(500, 600)] * 2


def test_history_is_thinned_and_read_once_in_its_finest_form(run: Run) -> None:
    points_add(run, 5400)  # three hours
    before = run_series(run, ["loss", "samples_per_second"], points=5000)
    end = START + timedelta(hours=3)
    assert points_rollup(end + timedelta(minutes=5)) > 0
    assert points_rollup(end + timedelta(minutes=5)) == 0
    kinds = MetricPoint.Resolution
    minutes = MetricPoint.objects.filter(resolution=kinds.MINUTE).count()
    hours = MetricPoint.objects.filter(resolution=kinds.HOUR).count()
    assert 179 * 2 <= minutes <= 180 * 7
    assert 2 * 2 <= hours <= 3 * 7
    assert len(run_series(run, ["loss"], points=5000)["t"]) == len(before["t"])

    assert points_prune(end + timedelta(hours=23)) > 0
    raw = MetricPoint.objects.filter(resolution=kinds.RAW).order_by("at")
    assert raw.first().at == START + timedelta(hours=2)  # type: ignore[union-attr]
    after = run_series(run, ["loss", "samples_per_second"], points=5000)
    assert max(after["samples_per_second"]) == 500.0
    assert after["t"] == sorted(set(after["t"]))
    assert after["t"][0] == before["t"][0] or after["loss"][0] == 8.0 - 1 / 5400

    RunEvent.objects.update(at=START)
    points_prune(end + timedelta(days=40))
    assert not MetricPoint.objects.filter(
        resolution=kinds.MINUTE, at__lt=START + timedelta(hours=2)
    ).exists()
    assert not RunEvent.objects.exists()
    assert max(run_series(run, ["samples_per_second"])["samples_per_second"]) == 500.0


def test_pruning_waits_for_the_thinned_copy(run: Run) -> None:
    points_add(run, 20)
    assert points_prune(START + timedelta(seconds=50)) == 0
    assert MetricPoint.objects.count() == 20


def test_the_tasks_do_the_same(run: Run) -> None:
    points_add(run, 100)
    points_rollup_task()
    points_prune_task()
    assert not MetricPoint.objects.filter(resolution=0, at__lt=START).exists()


def epochs_spent(run: Run, count: int) -> None:
    EpochRecord.objects.bulk_create(
        EpochRecord(run=run, lineage=1, epoch=i, finished_at=START, num_timed=2, num_averaged=1,
                    computing_seconds=20.0 - i % 2, waiting_seconds=float(i % 2),
                    matchmaking_seconds=1.0, averaging_seconds=2.0)
        for i in range(count)
    )  # fmt: skip


def test_the_parts_of_a_thinned_epoch_are_means_that_add_up(run: Run) -> None:
    epochs_spent(run, 400)
    columns = run_series_by_lineage(run, ["computing_seconds", "waiting_seconds"], points=20)
    assert len(columns["epoch"]) <= 20
    assert set(columns["computing_seconds"]) == {19.5}
    assert set(columns["waiting_seconds"]) == {0.5}


def test_the_newest_epochs_are_as_they_were(run: Run) -> None:
    epochs_spent(run, 400)
    EpochRecord.objects.filter(epoch=399).update(computing_seconds=None)
    found = run_epochs_newest(run, ["computing_seconds", "waiting_seconds"], 24, last=398)
    assert [row["epoch"] for row in found] == list(range(398, 374, -1))
    assert all(row["computing_seconds"] + row["waiting_seconds"] == 20 for row in found)
