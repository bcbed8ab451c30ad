"""From single peers to the swarm."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.evidence import START, at, key_of
from training.coordinator.aggregate import (
    MAX_PEERS,
    MAX_WORK_ROWS,
    PeerView,
    SwarmFigures,
    peers_that_fit,
    reports_that_fit,
    snapshot_make,
    swarm_figures,
)
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.metrics import EpochReport, EpochWork, PeerObservation
from training.protocol.states import Reach

CONFIG = RunConfig(run="demo", title="Demo", version=1, task=TaskConfig(name="tiny"))


def view(
    name: str = "alice",
    *,
    epoch: int = 3,
    samples: int = 10,
    speed: float = 5.0,
    loss: float | None = None,
    loss_samples: int = 1,
    age: float = 0.0,
    reach: Reach = Reach.DIRECT,
    jws: str = "signed",
    is_training: bool = True,
) -> PeerView:
    observation = PeerObservation(
        key_thumbprint=key_of(name),
        seen_at=START - timedelta(seconds=age),
        reach=reach,
        epoch=epoch,
        samples_accumulated=samples,
        samples_per_second=speed,
        loss=loss,
        jws=jws,
    )
    return PeerView(observation, loss_samples, is_training=is_training)


def figures(*views: PeerView, last_epoch: int = 0) -> SwarmFigures:
    return swarm_figures(views, START, last_epoch=last_epoch, metrics_seconds=10)


def test_only_peers_in_the_newest_epoch_have_samples_towards_it() -> None:
    found = figures(view("alice"), view("bob", samples=7), view("charlie", epoch=2, samples=99))
    assert (found.epoch, found.samples_accumulated, found.num_live) == (3, 17, 3)
    assert found.samples_per_second == 15.0


def test_a_peer_in_client_mode_does_not_set_the_epoch() -> None:
    found = figures(view("alice"), view("bob", epoch=9, reach=Reach.CLIENT))
    assert (found.epoch, found.samples_accumulated) == (3, 10)


def test_a_silent_peer_counts_no_more_and_a_stock_peer_may_be_silent_for_longer() -> None:
    found = figures(view("alice", age=11, epoch=8), view("bob", age=50, jws="", epoch=4))
    assert (found.epoch, found.num_live) == (4, 1)
    assert figures(view("bob", age=61, jws="")).num_live == 0


def test_a_peer_that_is_only_joining_does_not_pull_the_swarm_to_epoch_zero() -> None:
    found = figures(view("alice", epoch=0, samples=0, is_training=False), last_epoch=40)
    assert (found.epoch, found.samples_accumulated, found.num_live) == (40, 0, 0)


def test_the_loss_is_weighted_by_samples() -> None:
    found = figures(
        view("alice", loss=2.0, loss_samples=300),
        view("bob", loss=6.0, loss_samples=100),
        view("charlie", loss=99.0, loss_samples=0),
    )
    assert found.loss == pytest.approx(3.0)
    assert figures(view("alice")).loss is None


peers = st.lists(
    st.builds(
        view,
        st.text("abc", min_size=1, max_size=3),
        epoch=st.integers(0, 50),
        samples=st.integers(0, 10**9),
        speed=st.floats(0, 1e9),
        loss=st.none() | st.floats(-1e39, 1e39),
        loss_samples=st.integers(0, 10**9),
        age=st.floats(0, 120),
        reach=st.sampled_from(Reach),
        jws=st.sampled_from(["", "signed"]),
        is_training=st.booleans(),
    ),
    max_size=12,
)


@given(peers, st.integers(0, 50))
def test_figures_stay_within_what_the_peers_said(views: list[PeerView], last_epoch: int) -> None:
    found = figures(*views, last_epoch=last_epoch)
    assert found.epoch in {last_epoch, *(v.observation.epoch for v in views)}
    assert 0 <= found.samples_accumulated <= sum(v.observation.samples_accumulated for v in views)
    assert 0 <= found.samples_per_second <= sum(v.observation.samples_per_second for v in views)
    assert found.num_live <= len(views)
    losses = [v.observation.loss for v in views if v.observation.loss is not None]
    if found.loss is not None:
        assert math.isfinite(found.loss)
        slack = 1e-9 * max(map(abs, losses))
        assert min(losses) - slack <= found.loss <= max(losses) + slack


@given(peers)
def test_the_order_of_peers_does_not_matter(views: list[PeerView]) -> None:
    one, other = figures(*views), figures(*reversed(views))
    assert (one.epoch, one.samples_accumulated, one.num_live) == (
        other.epoch,
        other.samples_accumulated,
        other.num_live,
    )


def report(epoch: int, rows: int) -> EpochReport:
    work = tuple(EpochWork(key_thumbprint=key_of(str(n)), samples=1) for n in range(rows))
    return EpochReport(epoch=epoch, finished_at=START, work=work)


def test_a_snapshot_carries_as_many_old_reports_as_fit_and_at_least_one() -> None:
    many = [report(epoch, MAX_WORK_ROWS // 4) for epoch in range(6)]
    assert [r.epoch for r in reports_that_fit(many)] == [0, 1, 2]
    assert reports_that_fit([report(7, MAX_WORK_ROWS + 1)])[0].epoch == 7
    assert len(reports_that_fit([report(epoch, 0) for epoch in range(1500)])) == 1000
    assert reports_that_fit([]) == ()


def test_a_snapshot_keeps_the_peers_seen_last_in_a_steady_order() -> None:
    views = [view(str(n), age=n / 1000) for n in range(MAX_PEERS + 3)]
    snapshot = snapshot_make(
        CONFIG,
        figures(*views),
        views=views,
        seq=7,
        now=at(0),
        pending=[report(2, 1)],
        bootstrap_peers=[f"/ip4/127.0.0.1/tcp/{n}" for n in range(100)],
    )
    keys = [peer.key_thumbprint for peer in snapshot.peers]
    assert len(keys) == MAX_PEERS
    assert keys == sorted(keys)
    assert key_of(str(MAX_PEERS + 2)) not in keys
    assert (snapshot.seq, snapshot.epoch, len(snapshot.bootstrap_peers)) == (7, 3, 64)
    assert [r.epoch for r in snapshot.finished_epochs] == [2]


@pytest.mark.parametrize("length", [10, 400, 1000])
def test_peers_whose_reports_do_not_fit_have_their_turn_in_the_next_snapshots(length: int) -> None:
    peers = [view(str(n), jws="x" * length).observation for n in range(40)]
    shown: set[str] = set()
    for seq in range(1, 12):
        chosen = peers_that_fit(peers, seq, limit=4000)
        assert sum(len(peer.jws) for peer in chosen) <= 4000
        assert [p.key_thumbprint for p in chosen] == sorted(p.key_thumbprint for p in chosen)
        shown |= {peer.key_thumbprint for peer in chosen}
    assert len(shown) == 40
