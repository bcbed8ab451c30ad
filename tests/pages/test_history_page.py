"""The history of a run without scripts."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import user_make
from tests.pages.pasts import past_scene
from tests.pages.scenes import run_open
from web.accounts.models import User
from web.monitoring.models import EpochRecord, SwarmMoment

pytestmark = pytest.mark.django_db
PATH = "/runs/python-docs/history/"


def text(client: Client, path: str = PATH, **query: str) -> str:
    response = client.get(path, query)
    assert response.status_code == 200
    return response.content.decode()


def rows(client: Client, path: str, **query: str) -> list[list[str]]:
    return list(csv.reader(StringIO(text(client, path, **query))))


def test_a_run_without_a_past_says_what_will_appear(client: Client, alice: User) -> None:
    run_open(alice)
    page = text(client)
    assert "Nothing to replay yet" in page
    assert "Nobody has said yet" in page
    assert "No throughput yet" in page


def test_trainers_that_do_not_report_their_time_leave_an_empty_state(
    client: Client, alice: User, bob: User
) -> None:
    past_scene(alice, [alice, bob])
    assert "Nobody has said yet" not in text(client)
    EpochRecord.objects.update(computing_seconds=None, num_timed=0)
    assert "Nobody has said yet" in text(client)


def test_an_address_names_a_moment(client: Client, alice: User, bob: User) -> None:
    past_scene(alice, [alice, bob])
    moments = list(SwarmMoment.objects.order_by("at"))
    at = moments[20].at
    page = text(client, at=f"{at:%Y-%m-%dT%H:%M:%S}")
    assert f"{at:%Y-%m-%d %H:%M:%S} UTC" in page
    assert f"?at={moments[19].at:%Y-%m-%dT%H:%M:%S}" in page, "earlier"
    assert f"?at={moments[21].at:%Y-%m-%dT%H:%M:%S}" in page, "later"
    part = text(client, f"{PATH}moment/", at=at.isoformat())
    assert "<html" not in part
    assert f"{at:%Y-%m-%d %H:%M:%S} UTC" in part
    for nonsense in ("yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert "the newest that is kept" in text(client, at=nonsense)


def test_the_past_of_a_stall_is_a_stall(client: Client, alice: User, bob: User) -> None:
    run = past_scene(alice, [alice, bob])
    stalled = run.turns.get(condition="stalled")
    part = text(client, f"{PATH}moment/", at=(stalled.at + timedelta(seconds=5)).isoformat())
    assert "Stalled" in part
    assert "No epoch for 5 min, 1 peer" in part


def test_every_chart_has_its_numbers_as_csv(client: Client, alice: User, bob: User) -> None:
    past_scene(alice, [alice, bob])
    throughput = rows(client, f"{PATH}throughput.csv")
    assert throughput[0] == ["time", "RTX 30 series", "CPU"]
    assert len(throughput) == 61
    epochs = rows(client, f"{PATH}epochs.csv", first="12", last="13")
    assert epochs[0][:4] == ["lineage", "epoch", "loss", "samples_per_second"]
    assert [row[:2] for row in epochs[1:]] == [["1", "12"], ["1", "13"], ["2", "12"], ["2", "13"]]
    marks = rows(client, f"{PATH}marks.csv")
    assert {"incident", "config", "checkpoint", "state"} == {row[1] for row in marks[1:]}
    assert client.get(f"{PATH}addresses.csv").status_code == 404


def test_the_csv_is_of_the_shown_stretch(client: Client, alice: User, bob: User) -> None:
    past_scene(alice, [alice, bob])
    start = (timezone.now() - timedelta(seconds=205)).isoformat()
    end = (timezone.now() - timedelta(seconds=95)).isoformat()
    path = "/runs/python-docs/series.csv"
    assert len(rows(client, path)) == 31
    assert 4 <= len(rows(client, path, **{"from": start, "to": end})) <= 8
    by_epoch = rows(client, path, x="epoch")
    assert by_epoch[0][:2] == ["lineage", "epoch"]
    assert len(by_epoch) == 1 + 30 + 18


@pytest.mark.parametrize("num_people", [1, 12])
def test_the_history_takes_a_fixed_number_of_queries(
    num_people: int, client: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    past_scene(alice, [user_make(f"bee{i}") for i in range(num_people)])
    with django_assert_num_queries(15):
        text(client)


def test_the_table_of_a_long_past_has_real_epochs(client: Client, alice: User, bob: User) -> None:
    run = past_scene(alice, [alice, bob])
    EpochRecord.objects.filter(lineage=2).delete()
    EpochRecord.objects.bulk_create(
        EpochRecord(run=run, lineage=1, epoch=i, finished_at=timezone.now(), num_timed=2,
                    num_averaged=2, computing_seconds=float(i), matchmaking_seconds=1.0,
                    averaging_seconds=1.0, waiting_seconds=0.0)
        for i in range(100, 200)
    )  # fmt: skip
    page = text(client)
    for epoch in range(176, 200):
        assert f'<th scope="row" class="num">{epoch}</th><td class="right">{epoch}.0 s</td>' in page
    assert '<th scope="row" class="num">175</th>' not in page


def test_a_csv_that_had_to_be_thinned_says_so_in_its_heads(
    client: Client, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    past_scene(alice, [alice, bob])
    series, epochs = "/runs/python-docs/series.csv", f"{PATH}epochs.csv"
    assert rows(client, series)[0][:2] == ["time", "loss"]
    monkeypatch.setattr("web.pages.tables.POINTS", 10)
    assert rows(client, series)[0][:2] == ["time", "loss (lowest or highest of a stretch)"]
    heads = rows(client, epochs)[0]
    assert heads[:3] == ["lineage", "epoch", "loss (lowest or highest of a stretch)"]
    assert "waiting_seconds (mean of a stretch)" in heads
