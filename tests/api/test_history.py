"""The past of a run, for programs."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories_runs import (
    Swarm,
    config_publish,
    observation_make,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from training.protocol.metrics import EpochTiming
from web.accounts.models import User
from web.monitoring.models import EpochRecord
from web.runs.models import Checkpoint, RunConfigVersion

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/demo/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 2, users=[bob])


def get(client: Client, path: str, **query: Any) -> Any:
    response = client.get(RUN + path, query)
    assert response.status_code == 200, response.content
    return response.json()


def test_the_swarm_as_it_was_and_its_neighbours(client: Client, swarm: Swarm) -> None:
    now = timezone.now()
    for ago in (40, 20, 0):
        snapshot_take(swarm, now - timedelta(seconds=ago), epoch=9 - ago // 20)
    past = get(client, "swarm/", at=(now - timedelta(seconds=20)).isoformat())
    assert (past["epoch"], past["num_peers"], past["peers"][0]["name"]) == (8, 2, "bob")
    assert past["before"] < past["at"] < past["after"]
    assert get(client, "swarm/")["epoch"] == 9
    text = str(past)
    assert swarm.volunteers[0].peer.peer_id not in text, "no address, no peer id"
    assert "10.0.0.1" not in text


def test_nothing_to_replay_is_said_as_such(client: Client, swarm: Swarm) -> None:
    response = client.get(RUN + "swarm/")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_throughput_has_a_column_per_class(client: Client, swarm: Swarm) -> None:
    assert get(client, "throughput/") == {"t": []}
    swarm.volunteers[1].peer.hardware = {"device": "NVIDIA GeForce RTX 3090"}
    swarm.volunteers[1].peer.save()
    snapshot_take(swarm, timezone.now())
    columns = get(client, "throughput/")
    assert (columns["CPU"], columns["RTX 30 series"], len(columns["t"])) == ([5], [5], 1)


def test_marks_name_configs_roll_backs_incidents_and_checkpoints(
    client: Client, swarm: Swarm
) -> None:
    now = timezone.now()
    snapshot_take(swarm, now, epoch=1, finished_epochs=(report_make(swarm, 0, now),))
    Checkpoint.objects.create(
        run=swarm.run, lineage=1, epoch=1, config_version=1, files=[], manifest="", saved_at=now
    )
    for _ in range(2):  # the version after a roll-back still says where its lineage began
        config = config_publish(swarm.run)
        body = config.body | {"start": {"lineage": 1, "epoch": 1, "manifest_sha256": "0" * 64}}
        RunConfigVersion.objects.filter(pk=config.pk).update(body=body)
    marks = get(client, "marks/")["items"]
    assert [mark["at"] for mark in marks] == sorted(mark["at"] for mark in marks)
    kinds = [mark["kind"] for mark in marks]
    assert kinds.count("rollback") == 1
    assert kinds.count("config") == 2
    assert {"state", "checkpoint"} <= set(kinds)
    (saved,) = (mark for mark in marks if mark["kind"] == "checkpoint")
    assert (saved["epoch"], saved["lineage"]) == (1, 1)
    (rolled,) = (mark for mark in marks if mark["kind"] == "rollback")
    assert (rolled["text"], rolled["epoch"]) == ("rolled back to epoch 1 (config version 2)", 0)
    assert get(client, "marks/", to="2020-01-01T00:00:00Z") == {"items": []}


def test_every_lineage_and_how_time_was_spent(client: Client, swarm: Swarm) -> None:
    now = timezone.now()
    timings = (EpochTiming(0, 8.0, 1.0, 2.0, 0.5, 2),)
    peers = tuple(observation_make(v, now, epoch=1, timings=timings) for v in swarm.volunteers)
    snapshot_take(swarm, now, epoch=1, peers=peers, finished_epochs=(report_make(swarm, 0, now),))
    EpochRecord.objects.create(run=swarm.run, lineage=2, epoch=0, finished_at=now, loss=1.23456789)
    asked = {"by": "epoch", "metrics": "loss,computing_seconds,averaged_share"}
    assert get(client, "series/", lineage="all", **asked) == {
        "lineage": [1, 2], "epoch": [0, 0], "loss": [2, 1.23457],
        "computing_seconds": [8, None], "averaged_share": [1, None],
    }  # fmt: skip
    assert get(client, "series/", **asked)["computing_seconds"] == [None], "the newest"
    assert get(client, "series/", lineage=1, **asked)["computing_seconds"] == [8]
    assert get(client, "series/", lineage=1, first=1, **asked)["epoch"] == []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("series/", {"by": "epoch", "lineage": "-1"}), ("series/", {"by": "epoch", "lineage": "²"}),
        ("series/", {"by": "epoch", "first": -1}), ("series/", {"by": "epoch", "last": 2**31}),
        ("swarm/", {"at": "then"}), ("swarm/", {"at": "9999-12-31T23:59:59-14:00"}),
        ("throughput/", {"points": 1}), ("marks/", {"from": "0001-01-01T00:00:00+14:00"}),
    ],
)  # fmt: skip
def test_a_strange_question_about_the_past_is_refused(
    client: Client, swarm: Swarm, path: str, query: dict[str, Any]
) -> None:
    response = client.get(RUN + path, query)
    assert (response.status_code, response.json()["code"]) == (422, "body_invalid")
