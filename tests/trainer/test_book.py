"""The trainer's own account: what its reports say."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.swarm.peers import config_make
from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.metrics import EpochSamples
from training.protocol.states import PeerState
from training.swarm.optimizer import FinishedEpoch
from training.trainer.book import Book, LossMeter
from training.trainer.session import TrainerSession


@dataclass
class Numbers:
    """The figures that a book reads from an optimizer."""

    local_epoch: int = 3
    num_peers: int = 2
    own: int = 40
    swarm: int = 100
    updates: int = 5
    opt: Any = field(default_factory=lambda: SimpleNamespace(param_groups=[{"lr": 0.25}]))

    @property
    def local_progress(self) -> SimpleNamespace:
        return SimpleNamespace(samples_accumulated=self.own)

    @property
    def tracker(self) -> SimpleNamespace:
        return SimpleNamespace(
            performance_ema=SimpleNamespace(num_updates=self.updates, samples_per_second=12.5),
            global_progress=SimpleNamespace(samples_accumulated=self.swarm),
            target_batch_size=256,
        )


def book(folder: Path, numbers: Numbers | None = None) -> Book:
    session = TrainerSession(
        config=config_make(),
        key=swarm_key_load_or_create(folder / "swarm.key"),
        sign_metrics=lambda metrics: "",
        bootstrap_peers=(),
        min_epoch=0,
        artifacts=folder,
        work_dir=folder,
    )
    return Book(session, numbers or Numbers())  # type: ignore[arg-type]


def finished(epoch: int, samples: int) -> FinishedEpoch:
    return FinishedEpoch(epoch=epoch, samples=samples, group_size=2, seconds=1.0)


def test_the_loss_is_the_mean_per_sample_so_far_then_of_the_last_epoch() -> None:
    meter = LossMeter()
    assert meter.loss is None
    meter.add(4.0, 10)
    meter.add(1.0, 30)
    assert meter.loss == pytest.approx(1.75)
    meter.epoch_end()
    meter.add(9.0, 10)
    assert meter.loss == pytest.approx(1.75)
    assert meter.num_steps == 2
    meter.epoch_end()
    assert meter.loss == 9.0


def test_an_epoch_without_own_samples_keeps_the_loss_of_the_one_before() -> None:
    meter = LossMeter()
    meter.add(2.0, 10)
    meter.epoch_end()
    meter.epoch_end()
    assert meter.loss == 2.0


def test_a_report_has_the_numbers_of_this_peer(tmp_path: Path) -> None:
    it = book(tmp_path)
    it.micro_step(2.5, 16)
    it.micro_step(1.5, 16)
    report = it.metrics()
    assert (report.epoch, report.samples_accumulated, report.samples_total) == (3, 40, 32)
    assert (report.loss, report.mini_steps, report.learning_rate) == (2.0, 2, 0.25)
    assert report.samples_per_second == 12.5
    assert report.state is PeerState.TRAINING


def test_recent_epochs_name_what_entered_their_average(tmp_path: Path) -> None:
    it = book(tmp_path)
    it.epoch_finished(finished(7, 120))
    it.epoch_finished(finished(8, 0))
    it.epoch_finished(finished(9, 80))
    assert it.metrics().recent == (
        EpochSamples(epoch=7, samples=120),
        EpochSamples(epoch=8, samples=0),
        EpochSamples(epoch=9, samples=80),
    )


def test_recent_epochs_are_few_enough_for_a_record(tmp_path: Path) -> None:
    it = book(tmp_path)
    for epoch in range(100):
        it.epoch_finished(finished(epoch, 4096))
    report = it.metrics()
    assert report.recent[-1].epoch == 99
    # Records beyond a pipe's atomic write could be torn by hivemind's other threads.
    assert len(report.model_dump_json()) * 4 / 3 < 2800


def test_a_paused_trainer_has_no_speed(tmp_path: Path) -> None:
    it = book(tmp_path)
    it.is_paused = True
    assert it.metrics().samples_per_second == 0
    assert it.stats().phase == "paused"


def test_before_the_first_step_there_is_no_speed(tmp_path: Path) -> None:
    assert book(tmp_path, Numbers(updates=0)).metrics().samples_per_second == 0


def test_the_person_sees_the_swarms_samples_or_at_least_the_own(tmp_path: Path) -> None:
    assert book(tmp_path).stats().samples_epoch == 100
    assert book(tmp_path, Numbers(swarm=10)).stats().samples_epoch == 40


def test_what_a_round_showed_is_told_and_a_failed_round_showed_nothing(tmp_path: Path) -> None:
    found = book(tmp_path)
    seen = {"QmAlice": 96, "QmCharlie": None}
    found.epoch_finished(
        FinishedEpoch(epoch=1, samples=40, group_size=3, seconds=1.0, weights=seen)
    )
    found.epoch_finished(FinishedEpoch(epoch=2, samples=0, group_size=0, seconds=1.0))
    found.epoch_finished(FinishedEpoch(epoch=3, samples=50, group_size=1, seconds=1.0))
    told = found.metrics().rounds
    assert [(r.epoch, r.group_size, r.weights) for r in told] == [(1, 3, seen), (3, 1, {})]
