"""What is made of the records of a swarm."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.coordinator.evidence import START, at
from training.coordinator.aggregate import PeerView
from training.coordinator.observe import SwarmView
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate, key_thumbprint, peer_id_of
from training.protocol.metrics import EpochSamples, PeerMetrics
from training.protocol.names import TYP_METRICS
from training.protocol.states import PeerState, Reach, Role
from training.swarm.records import MetricsNumbers, MetricsRecord, ProgressRecord

CONFIG = RunConfig(run="demo", title="Demo", version=1, task=TaskConfig(name="tiny"))
DEVICE = key_generate()
DER = b"stands in for an RSA public key"
KEY = key_thumbprint(DER)
STATED: dict[str, object] = {
    "run": "demo",
    "lineage": 1,
    "peer_id": peer_id_of(DER),
    "config_version": 1,
    "epoch": 4,
    "samples_accumulated": 30,
    "samples_total": 900,
    "samples_per_second": 12.0,
    "loss": 3.5,
    "recent": (EpochSamples(epoch=2, samples=70), EpochSamples(epoch=3, samples=80)),
    "taken_at": at(0),
}


def record(jws: str | None = None, *, expires: float = 60, **changes: object) -> MetricsRecord:
    """Return a metrics record; ``jws`` '' makes it a stock trainer's."""
    if jws is None:
        body = PeerMetrics.model_validate(STATED | changes)
        lifetime = timedelta(minutes=5)
        jws = sign(body, typ=TYP_METRICS, key=DEVICE, issuer="x", lifetime=lifetime, now=START)
    numbers = MetricsNumbers(
        step=4, samples_per_second=11.0, samples_accumulated=25, loss=4.5, mini_steps=2
    )
    return MetricsRecord(DER, KEY, numbers, jws, at(expires).timestamp())


def pushed(samples: int = 40, seconds: float = 1, *, epoch: int = 4) -> ProgressRecord:
    time = at(seconds)
    return ProgressRecord(KEY, peer_id_of(DER), epoch, samples, 99.0, False, time, time)


def only_peer(view: SwarmView, seconds: float = 1, direct: tuple[str, ...] = ()) -> PeerView:
    (peer,) = view.peers(at(seconds), direct)
    return peer


def test_signed_metrics_give_a_peers_numbers_and_travel_on() -> None:
    view = SwarmView(CONFIG)
    read = record()
    (seen,) = view.take_metrics([read], at(0))
    assert seen.metrics is not None
    peer = only_peer(view, direct=(peer_id_of(DER),))
    found = peer.observation
    assert (found.key_thumbprint, found.peer_id, found.jws) == (KEY, peer_id_of(DER), read.jws)
    assert (found.epoch, found.samples_accumulated, found.samples_per_second) == (4, 30, 12.0)
    assert (found.loss, peer.loss_samples, found.reach) == (3.5, 80, Reach.DIRECT)
    assert peer.is_training


def test_a_newer_push_gives_the_samples_and_the_metrics_the_rate() -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record()], at(0))
    view.take_progress(pushed(samples=40, seconds=1))
    view.take_progress(pushed(samples=20, seconds=0.5))
    found = only_peer(view).observation
    assert (found.samples_accumulated, found.samples_per_second) == (40, 12.0)
    assert found.reach is Reach.UNKNOWN
    view.take_metrics([record(samples_accumulated=55, taken_at=at(2))], at(2))
    assert only_peer(view, 2).observation.samples_accumulated == 55


def test_a_stock_trainer_shows_without_a_signature() -> None:
    view = SwarmView(CONFIG)
    (seen,) = view.take_metrics([record("")], at(0))
    assert seen.metrics is None
    peer = only_peer(view)
    assert (peer.observation.epoch, peer.observation.loss, peer.loss_samples) == (4, 4.5, 25)
    assert (peer.observation.jws, peer.observation.peer_id) == ("", "")
    view.take_progress(pushed())
    found = only_peer(view).observation
    assert (found.samples_accumulated, found.samples_per_second) == (40, 99.0)
    assert found.peer_id == peer_id_of(DER)


def test_a_peer_that_only_pushes_shows_too() -> None:
    view = SwarmView(CONFIG)
    view.take_progress(replace(pushed(), client_mode=True))
    peer = only_peer(view)
    assert (peer.observation.reach, peer.observation.loss, peer.loss_samples) == (
        Reach.CLIENT,
        None,
        0,
    )


@pytest.mark.parametrize(
    "changes",
    [{"run": "other"}, {"lineage": 2}, {"peer_id": "QmSomebodyElse"}, {"jws": "no.jws"}],
)
def test_malformed_metrics_and_those_of_others_are_dropped(changes: dict[str, object]) -> None:
    view = SwarmView(CONFIG)
    assert view.take_metrics([record(**changes)], at(0)) == []  # type: ignore[arg-type]
    assert (view.num_malformed, view.peers(at(0))) == (1, [])


def test_a_record_that_stays_the_same_grows_old() -> None:
    view = SwarmView(CONFIG)
    read = record(expires=60)
    for seconds in (5, 10, 20):
        view.take_metrics([read], at(seconds))
    assert only_peer(view, 20).observation.seen_at == at(0)
    view.take_metrics([record(expires=78)], at(22))
    assert only_peer(view, 22).observation.seen_at == at(22)


def test_a_record_that_claims_to_come_from_the_future_was_seen_now() -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record(expires=1000)], at(3))
    assert only_peer(view, 3).observation.seen_at == at(3)


@pytest.mark.parametrize("state", [PeerState.JOINING, PeerState.SYNCING, PeerState.LEFT])
def test_a_peer_that_does_not_train_has_no_part_in_the_figures(state: PeerState) -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record(state=state)], at(0))
    assert not only_peer(view).is_training


def test_an_auxiliary_peer_is_seen_but_moves_no_figure() -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record(role=Role.AUXILIARY, epoch=40)], at(0))
    assert only_peer(view).observation.epoch == 40
    assert not only_peer(view).is_training


def test_a_peer_that_took_its_record_back_has_left_until_it_pushes_again() -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record()], at(0))
    view.take_progress(pushed(seconds=1))
    view.take_progress(replace(pushed(seconds=2), left=True))
    assert not only_peer(view, 2).is_training
    view.take_progress(pushed(seconds=3))
    assert only_peer(view, 3).is_training


def test_a_silent_pusher_is_gone_after_a_minute() -> None:
    view = SwarmView(CONFIG)
    view.take_progress(pushed(seconds=1))
    view.take_progress(replace(pushed(seconds=2), left=True))
    assert len(view.peers(at(61))) == 1
    assert view.peers(at(62.5)) == []


def test_before_its_first_epoch_a_loss_weighs_as_much_as_was_computed() -> None:
    view = SwarmView(CONFIG)
    view.take_metrics([record(recent=())], at(0))
    assert only_peer(view).loss_samples == 30
