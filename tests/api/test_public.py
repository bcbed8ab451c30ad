"""What everybody may read."""

import csv
import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.test import AsyncClient, Client
from django.utils import timezone

from tests.factories import bearer, device_make, token_make
from tests.factories_runs import (
    Swarm,
    config_publish,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from training.protocol.api import ConfigOut, LiveRun, RunSummary
from web.accounts.models import User
from web.runs.models import Run, RunMember
from web.runs.services import run_member_add

pytestmark = pytest.mark.django_db
API = "/api/v1/"


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    made = swarm_make(run_make(alice), 2, users=[bob])
    now = timezone.now()
    snapshot_take(made, now - timedelta(seconds=2))
    snapshot_take(made, now, epoch=1, finished_epochs=(report_make(made, 0, now),))
    return made


def get(client: Client, path: str, **query: Any) -> Any:
    response = client.get(API + path, query)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_run_is_listed_and_shown(client: Client, swarm: Swarm) -> None:
    listed = get(client, "runs/")
    assert listed["next"] is None
    (row,) = (RunSummary.model_validate(item) for item in listed["items"])
    assert (row.slug, row.task, row.state, row.epoch, row.samples_total) == (
        "demo", "tiny", "training", 1, 100,
    )  # fmt: skip
    run = get(client, "runs/demo/")
    assert run["reason"] == "training: epoch 1, 2 peers, 20 % of the batch"
    assert (run["organiser"], run["run_state"], run["num_peers"]) == ("alice", "open", 2)
    assert run["join_policy"] == "open"
    Run.objects.update(join_policy="approval")
    assert get(client, "runs/demo/")["join_policy"] == "approval"


def test_the_state_is_a_live_run_with_its_number(client: Client, swarm: Swarm) -> None:
    state = LiveRun.model_validate(get(client, "runs/demo/state/"))
    swarm.run.refresh_from_db()
    assert state.seq == swarm.run.live_seq
    assert len(state.peers) == 2
    assert b"10.0.0.1" not in client.get(API + "runs/demo/state/").content


def test_history_comes_in_columns(client: Client, swarm: Swarm) -> None:
    series = get(client, "runs/demo/series/", metrics="loss,num_peers,samples_total")
    assert set(series) == {"t", "loss", "num_peers", "samples_total"}
    assert series["samples_total"] == [0, 100]
    start = (timezone.now() - timedelta(seconds=1)).isoformat()
    assert len(get(client, "runs/demo/series/", **{"from": start})["t"]) == 1
    assert get(client, "runs/demo/series/", to="2020-01-01T00:00:00")["t"] == []
    epochs = get(client, "runs/demo/series/", by="epoch", metrics="loss,samples")
    assert epochs == {"epoch": [0], "loss": [2.0], "samples": [100]}


@pytest.mark.parametrize(
    "query",
    [
        {"metrics": "address"}, {"by": "moon"}, {"points": 1}, {"points": 5001},
        {"from": "yesterday"}, {"by": "epoch", "metrics": "epoch"},
    ],
)  # fmt: skip
def test_a_strange_question_about_history_is_refused(
    client: Client, swarm: Swarm, query: dict[str, Any]
) -> None:
    response = client.get(API + "runs/demo/series/", query)
    assert (response.status_code, response.json()["code"]) == (422, "body_invalid")


def test_the_config_comes_signed_decoded_and_compared(client: Client, swarm: Swarm) -> None:
    config_publish(swarm.run, max_epochs=9)
    config = ConfigOut.model_validate(get(client, "runs/demo/config/"))
    assert (config.version, config.config["max_epochs"]) == (2, 9)
    assert config.diff == [{"path": "max_epochs", "old": None, "new": 9}]
    assert get(client, "runs/demo/config/", version=1)["diff"] == []
    assert client.get(API + "runs/demo/config/?version=3").status_code == 404


def test_the_leaderboard_as_json_and_csv(client: Client, swarm: Swarm, bob: User) -> None:
    client.force_login(bob)
    board = get(client, "runs/demo/leaderboard/", period="7d")
    (row,) = board["items"]
    assert (row["rank"], row["user"], row["samples"], row["share"]) == (1, "bob", 100, 1.0)
    assert board["me"]["user"] == "bob"
    assert board["next"] is None
    response = client.get(API + "runs/demo/leaderboard/?format=csv")
    (line,) = csv.DictReader(StringIO(response.content.decode()))
    assert (line["user"], line["samples"]) == ("bob", "100")
    for query in ({"period": "1y"}, {"format": "xml"}):
        assert client.get(API + "runs/demo/leaderboard/", query).status_code == 422


def test_the_ledger_in_three_formats(client: Client, swarm: Swarm) -> None:
    rows = get(client, "runs/demo/contributions/", limit=1)
    assert (rows["items"][0]["user"], rows["items"][0]["samples"]) == ("bob", 50)
    more = get(client, "runs/demo/contributions/", limit=1, cursor=rows["next"])
    assert more["next"] is None
    assert more["items"][0]["device"] != rows["items"][0]["device"]
    text = client.get(API + "runs/demo/contributions/?format=csv").getvalue().decode()  # type: ignore[attr-defined]
    assert [line["samples"] for line in csv.DictReader(StringIO(text))] == ["50", "50"]
    text = client.get(API + "runs/demo/contributions/?format=ndjson").getvalue().decode()  # type: ignore[attr-defined]
    assert [json.loads(line)["epoch"] for line in text.splitlines()] == [0, 0]
    assert client.get(API + "runs/demo/contributions/?format=xml").status_code == 422
    assert get(client, "runs/demo/contributions/", user="alice")["items"] == []
    assert client.get(API + "runs/demo/contributions/?user=nobody").status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_exports_are_sent_piece_by_piece_also_to_async_servers(
    async_client: AsyncClient, swarm: Swarm
) -> None:
    answer: Any = await async_client.get(API + "runs/demo/contributions/?format=ndjson")
    pieces = [piece async for piece in answer.streaming_content]
    assert len(b"".join(pieces).splitlines()) == 2


def test_a_cell_that_a_spreadsheet_would_run_is_disarmed(client: Client, swarm: Swarm) -> None:
    swarm.volunteers[0].device.name = "=HYPERLINK(1)"
    swarm.volunteers[0].device.save()
    text = client.get(API + "runs/demo/contributions/?format=csv").getvalue().decode()  # type: ignore[attr-defined]
    assert "'=HYPERLINK(1)" in text


def test_hidden_people_stay_hidden(client: Client, swarm: Swarm, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_profile_public=False)
    snapshot_take(swarm)
    for path in ("leaderboard/", "contributions/", "state/", "contributions/?format=ndjson"):
        response: Any = client.get(f"{API}runs/demo/{path}")
        body = response.getvalue().decode()
        assert "bob" not in body, path
        assert "machine" not in body, path
    assert client.get(API + "users/bob/").status_code == 404
    assert client.get(API + "runs/demo/contributions/?user=bob").status_code == 404


def test_a_public_profile_shows_totals(client: Client, swarm: Swarm) -> None:
    profile = get(client, "users/bob/")
    assert (profile["samples"], profile["runs"][0]["run"]) == (100, "demo")
    assert get(client, "users/bob/contributions/")["items"][0]["samples"] == 50
    assert b"100 samples" in client.get(API + "users/bob/badge.svg").content


def test_events_and_badge(client: Client, swarm: Swarm) -> None:
    events = get(client, "runs/demo/events/", limit=2)
    assert events["items"][0]["kind"] == "epoch.finished"
    assert events["items"][0]["seq"] > events["items"][1]["seq"]
    badge = client.get(API + "runs/demo/badge.svg")
    assert badge["Content-Type"] == "image/svg+xml"
    assert "training, epoch 1, 2 peers" in badge.content.decode()


def test_what_has_not_changed_is_not_sent_again(client: Client, swarm: Swarm) -> None:
    first = client.get(API + "runs/demo/config/")
    again = client.get(API + "runs/demo/config/", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


PATHS = (
    "", "state/", "series/", "config/", "leaderboard/", "contributions/", "events/", "badge.svg",
    "checkpoints/", "revocations/",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_private_run_is_there_for_members_only(
    client: Client, alice: User, bob: User, charlie: User, path: str
) -> None:
    run = run_make(alice, "secret", is_public=False)
    run_member_add(alice, run, bob, RunMember.Part.VOLUNTEER)
    url = f"{API}runs/secret/{path}"
    tokens = {user: token_make(user, "read") for user in (alice, bob, charlie)}
    statuses = [client.get(url, headers=bearer(token)).status_code for token in tokens.values()]
    assert [*statuses, client.get(url).status_code] == [200, 200, 404, 404]
    problem = client.get(url).json()
    assert (problem["code"], bool(problem["remedy"])) == ("run_not_found", True)
    assert client.get(f"{API}runs/nothing/{path}").status_code == 404


def test_lists_take_a_fixed_number_of_queries(
    client: Client, alice: User, django_assert_num_queries: Any
) -> None:
    for number in range(4):
        run_make(alice, f"run-{number}")
    with django_assert_num_queries(3):
        client.get(API + "runs/")
    run = run_make(alice, "demo")
    device_make(alice)
    with django_assert_num_queries(3):
        client.get(API + f"runs/{run.slug}/leaderboard/")
