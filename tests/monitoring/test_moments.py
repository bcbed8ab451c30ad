"""What is kept of the swarm as it was, how it ages, and how it is read again."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.factories_runs import run_make, snapshot_take, swarm_make
from training.protocol.api import LivePeer
from training.protocol.states import LiveState, PeerState, Role
from web.accounts.models import User
from web.monitoring.hardware import hardware_class
from web.monitoring.models import SwarmMoment, SwarmTurn
from web.monitoring.moments import (
    MAX_CLASSES,
    MAX_PEERS,
    OTHERS,
    classes_of,
    condition_of,
)
from web.monitoring.moments_age import MAX_TURNS, moments_thin
from web.monitoring.replay import moments_span, run_throughput, swarm_at
from web.monitoring.services import live_states_refresh
from web.runs.models import Run

START = datetime(2026, 3, 1, tzinfo=UTC)


def peer(hardware: str, rate: float = 1.0, **fields: object) -> LivePeer:
    given = {"name": "bob", "verified": True, "seen_at": START, "role": Role.TRAINER}
    given |= {"reach": "direct", "epoch": 0, "samples_accumulated": 0}
    given |= {"state": PeerState.TRAINING, "hardware": hardware, "samples_per_second": rate}
    return LivePeer.model_validate(given | fields)


@pytest.mark.parametrize(
    ("device", "name"),
    [("", "unknown"), ("cpu", "CPU"), ("NVIDIA GeForce RTX 3090", "RTX 30 series")],
)
def test_a_machine_has_the_class_that_the_peers_table_gives_it(device: str, name: str) -> None:
    assert hardware_class(device) == name
    assert classes_of({"k": peer(device)}) == {name: 1.0}


@pytest.mark.django_db
def test_over_a_long_time_the_largest_classes_are_named_and_the_rest_are_others(
    alice: User,
) -> None:
    run = run_make(alice)
    for i in range(20):
        classes = {f"X{i}": float(i), OTHERS: 1.0, "unverified": 50.0}
        moments_add(run, 1, 10, at=START + timedelta(seconds=10 * i), classes=classes)
    columns = run_throughput(run)
    assert list(columns) == ["t", *(f"X{i}" for i in range(19, 12, -1)), "unverified", OTHERS]
    assert [round(v, 2) for v in columns[OTHERS]] == [1.0 + i for i in range(13)] + [1.0] * 7


@pytest.mark.django_db
def test_a_class_that_was_written_down_by_its_old_name_is_read_by_todays(alice: User) -> None:
    run = run_make(alice)
    kept = {"RTX 3090": 5.0, "RTX 3080": 2.0, "RTX 30 series": 1.0, "A100": 1.0}
    moments_add(run, 1, 10, classes=kept)
    past = swarm_at(run, START)
    assert past is not None
    assert past.classes == {"RTX 30 series": 8.0, "A100": 1.0}
    assert list(run_throughput(run)) == ["t", "RTX 30 series", "A100"]


@given(
    st.dictionaries(st.text("ab0", min_size=1), st.tuples(st.text(max_size=30), st.floats(0, 9)))
)
def test_classes_add_up_to_the_swarm_and_are_few(rows: dict[str, tuple[str, float]]) -> None:
    peers = {key: peer(device, rate) for key, (device, rate) in rows.items()}
    classes = classes_of(peers)
    assert len(classes) <= MAX_CLASSES + 1
    assert sum(classes.values()) == pytest.approx(sum(r for _, r in rows.values()), abs=0.1)


def test_the_smallest_classes_are_one_and_the_gone_are_none() -> None:
    peers = {f"p{i}": peer(f"Card{i:03d}", float(i)) for i in range(1, 12)}
    peers["gone"] = peer("NVIDIA T4", 99.0, state=PeerState.LEFT)
    peers["stranger"] = peer("NVIDIA T4", 50.0, verified=False)
    classes = classes_of(peers)
    assert classes[OTHERS] == 1.0 + 2.0 + 3.0 + 4.0
    assert (classes["unverified"], "T4" in classes) == (50.0, False)


def test_training_and_averaging_are_one_condition() -> None:
    assert condition_of(LiveState.TRAINING) == condition_of(LiveState.AVERAGING) == "running"
    assert {condition_of(s) for s in LiveState} == {
        "running", "waiting_for_peers", "stalled", "unknown", "paused", "finished", "draft",
    }  # fmt: skip


@pytest.mark.django_db
def test_a_snapshot_leaves_a_moment_that_can_be_replayed(alice: User) -> None:
    swarm = swarm_make(run_make(alice), 3)
    now = timezone.now()
    snapshot_take(swarm, now, epoch=4)
    snapshot_take(swarm, now, epoch=4)
    assert SwarmMoment.objects.count() == 1, "one in ten seconds"

    past = swarm_at(swarm.run, now)
    assert past is not None
    assert (past.epoch, past.lineage, past.num_peers, len(past.peers)) == (4, 1, 3, 3)
    assert {p.name for p in past.peers} <= {"volunteer0", "volunteer1", "volunteer2"}
    assert past.counts == {"training": 3}
    assert list(past.classes) == ["CPU"]
    assert past.state in (LiveState.TRAINING, LiveState.WARMING_UP)
    assert (past.before, past.after) == (None, None)


@pytest.mark.django_db
def test_a_name_that_is_hidden_later_is_hidden_in_the_past(alice: User, bob: User) -> None:
    swarm = swarm_make(run_make(alice), 1, users=[bob])
    now = timezone.now()
    snapshot_take(swarm, now)
    bob.is_profile_public = False
    bob.save()
    past = swarm_at(swarm.run, now)
    assert past is not None
    assert [p.name for p in past.peers] != ["bob"]


@pytest.mark.django_db
def test_a_coordinator_that_falls_silent_is_a_turn_of_its_own(alice: User) -> None:
    swarm = swarm_make(run_make(alice), 2)
    now = timezone.now()
    snapshot_take(swarm, now)
    live_states_refresh(now + timedelta(minutes=5))
    snapshot_take(swarm, now + timedelta(minutes=6), epoch=1)
    turns = list(SwarmTurn.objects.values_list("condition", flat=True))
    assert turns[-2:] == ["unknown", "running"]
    past = swarm_at(swarm.run, now + timedelta(minutes=5, seconds=1))
    assert past is not None
    assert (past.state, past.reason.split(":")[0]) == (LiveState.UNKNOWN, "unknown")


def moments_add(run: Run, count: int, every: float, **fields: object) -> None:
    SwarmMoment.objects.bulk_create(
        SwarmMoment(**{
            "run": run, "at": START + timedelta(seconds=i * every), "lineage": 1, "epoch": i,
            "state": "training", "samples_per_second": 90.0 if i == 700 else 10.0 + i / count,
            "samples_total": i, "num_peers": 9 if i == 500 else 2,
            "classes": {"CPU": 10.0, "T4": 80.0} if i == 700 else {"CPU": 10.0 + i / count},
            **fields,
        })
        for i in range(count)
    )  # fmt: skip


@pytest.mark.django_db
def test_moments_are_thinned_by_age_and_keep_their_extremes(alice: User) -> None:
    run = run_make(alice)
    moments_add(run, 1080, 10)  # three hours
    end = START + timedelta(hours=3)
    assert moments_thin(end) == 0
    assert moments_thin(end + timedelta(hours=3)) > 0
    minutes = run.moments.count()
    assert 180 <= minutes <= 180 * 5
    assert moments_thin(end + timedelta(hours=3)) == 0, "idempotent"
    assert moments_thin(end + timedelta(days=8)) > 0
    assert 3 <= run.moments.count() <= 3 * 5
    rates = list(run.moments.values_list("samples_per_second", "num_peers"))
    assert max(rate for rate, _ in rates) == 90.0
    assert max(peers for _, peers in rates) == 9
    span = moments_span(run)
    assert span is not None
    assert span[1] == START + timedelta(seconds=10790), "the last stays"


@pytest.mark.django_db
def test_thinning_in_small_batches_gives_the_same(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, pieces = run_make(alice), run_make(alice, "other")
    for run in (whole, pieces):
        moments_add(run, 400, 10)
    kept = []
    for run, size in ((whole, 5000), (pieces, 7)):
        monkeypatch.setattr("web.monitoring.moments_age._BATCH", size)
        moments_thin(START + timedelta(days=1))
        kept.append(list(run.moments.values_list("at", flat=True)))
    assert kept[0] == kept[1]


@pytest.mark.django_db
def test_a_run_keeps_the_newest_turns(alice: User) -> None:
    run = run_make(alice)
    SwarmTurn.objects.bulk_create(
        SwarmTurn(run=run, at=START + timedelta(seconds=i), condition="stalled", reason=str(i))
        for i in range(MAX_TURNS + 30)
    )
    moments_thin(START)
    assert run.turns.count() == MAX_TURNS
    assert run.turns.last().reason == str(MAX_TURNS + 29)  # type: ignore[union-attr]


@pytest.mark.django_db
def test_throughput_by_class_keeps_the_highest_total(alice: User) -> None:
    run = run_make(alice)
    moments_add(run, 1080, 10)
    columns = run_throughput(run, points=60)
    assert list(columns) == ["t", "CPU", "T4"]
    assert len(columns["t"]) <= 60
    assert len({len(column) for column in columns.values()}) == 1
    assert max(columns["T4"]) == 80.0, "a peak of one moment survives"
    assert columns["t"] == sorted(columns["t"])
    assert columns["t"][-1] == (START + timedelta(seconds=10790)).timestamp()
    part = run_throughput(run, START, START + timedelta(seconds=100))
    assert len(part["t"]) == 11
    assert run_throughput(run, START - timedelta(days=1), START - timedelta(hours=1)) == {"t": []}


@pytest.mark.django_db
def test_a_moment_of_a_huge_swarm_is_bounded(alice: User) -> None:
    swarm = swarm_make(run_make(alice), 50)
    now = timezone.now()
    snapshot_take(swarm, now)
    past = swarm_at(swarm.run, now)
    assert past is not None
    assert (len(past.peers), past.num_more, past.num_peers) == (MAX_PEERS, 50 - MAX_PEERS, 50)


@pytest.mark.django_db
def test_before_the_first_moment_the_first_is_shown(alice: User) -> None:
    run = run_make(alice)
    assert swarm_at(run, START) is None
    moments_add(run, 3, 10)
    past = swarm_at(run, START - timedelta(days=9))
    assert past is not None
    assert (past.at, past.after) == (START, START + timedelta(seconds=10))
