"""An auxiliary peer: in the rounds of trainers, with nothing of its own in the result."""

import threading
from pathlib import Path

import pytest

from tests.swarm.peers import Peer, config_make, dht_peer, training_peer
from tests.swarm.processes import wait_until
from tests.swarm.test_same_result import (
    TOLERANCE,
    UPDATES,
    Trainee,
    relative_error,
    train_alone,
)
from tests.swarm.test_training import CONFIG, Trainers, group_of, strip, trainers
from training.client.status import status_read
from training.protocol.config import OptimizerConfig, TaskConfig
from training.protocol.envelope import peek_body
from training.protocol.metrics import PeerMetrics
from training.protocol.states import Role
from training.swarm.assist import AssistingOptimizer
from training.swarm.dht import metrics_read
from training.swarm.optimizer import FinishedEpoch

WIDE = TaskConfig(name="tiny", params={"features": 256, "hidden": 2048})
"""More than one part for each member of a round, so that everybody averages something."""
__all__ = ["trainers"]
pytestmark = [pytest.mark.swarm, pytest.mark.timeout(240)]


class Assistant(threading.Thread):
    """Assists until it is told to stop."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(daemon=True)
        assert isinstance(peer.optimizer, AssistingOptimizer)
        self.optimizer, self.stopping = peer.optimizer, threading.Event()

    @property
    def finished(self) -> list[FinishedEpoch]:
        return self.optimizer.finished

    def run(self) -> None:
        while not self.stopping.wait(0.1):
            self.optimizer.assist()


def test_two_trainers_and_an_assistant_reach_the_parameters_of_two_trainers(
    tmp_path: Path,
) -> None:
    config = config_make(
        OptimizerConfig(name="sgd", learning_rate=0.05),
        target_batch_size=640,
        matchmaking_seconds=3.0,
        averaging_timeout_seconds=30.0,
    ).model_copy(update={"task": WIDE})
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(
            tmp_path / "carol", config, entrance.addresses, kind=AssistingOptimizer
        ) as carol,
        training_peer(tmp_path / "alice", config, entrance.addresses) as alice,
        training_peer(tmp_path / "bob", config, entrance.addresses) as bob,
    ):
        assistant = Assistant(carol)
        trainees = [
            Trainee(alice, config, first_seed=0, samples=12),
            Trainee(bob, config, first_seed=10_000, samples=8),
        ]
        for thread in (assistant, *trainees):
            thread.start()
        for trainee in trainees:
            trainee.join(200)
            assert trainee.error is None
            assert not trainee.is_alive()
        assistant.stopping.set()
        assistant.join(30)

        assert all(trainee.group_sizes == [3] * UPDATES for trainee in trainees)
        assert [epoch.epoch for epoch in assistant.finished] == list(range(UPDATES))
        for epoch in assistant.finished:
            assert (epoch.group_size, epoch.samples) == (3, 0)
            read = {peer: samples for peer, samples in epoch.weights.items() if samples}
            truth = {
                one.peer.key.peer_id: sum(count for _, count in one.counted[epoch.epoch])
                for one in trainees
            }
            assert read == truth, "it is a witness of what the trainers sent"
        truth_model = train_alone(config, [trainee.counted for trainee in trainees])
        for peer in (alice, bob):
            assert peer.model is not None
            assert relative_error(peer.model, truth_model) <= TOLERANCE


def test_an_auxiliary_process_says_what_it_is_and_leaves_like_a_trainer(
    trainers: Trainers,
) -> None:
    (trainers.folder / "carol").mkdir()
    (trainers.folder / "carol" / "assist").touch()
    for name in ("alice", "bob", "carol"):
        trainers.start(name)
    trainers.wait_epochs("alice", 4, group=3)
    trainers.wait_epochs("carol", 1, group=3)
    assert {group_of(line) for line in trainers.finished("carol")} == {3}

    records = metrics_read(trainers.entrance.dht, run_id=CONFIG.swarm_id, timeout=5)
    reports = [PeerMetrics.model_validate(strip(peek_body(record.jws))) for record in records]
    (helper,) = [report for report in reports if report.role is Role.AUXILIARY]
    assert len(reports) == 3
    assert (helper.samples_total, helper.samples_accumulated, helper.loss) == (0, 0, None)
    assert not any(item.samples for item in helper.recent)
    others = [report.epoch for report in reports if report.role is Role.TRAINER]
    assert abs(helper.epoch - max(others)) <= 1
    progress = trainers.events("alice", "progress")[-1]
    assert progress["peers"] == 2, "nobody counts it among those who compute"

    pause = trainers.folder / "carol" / "pause"
    pause.touch()
    file = trainers.folder / "carol" / "status.json"
    wait_until("a paused status", lambda: (s := status_read(file)) and s.phase == "paused")
    trainers.wait_epochs("alice", 1, group=2)
    pause.unlink()
    trainers.wait_epochs("alice", 1, group=3)
    assert trainers.stop("carol") < 10
    status = status_read(file)
    assert status is not None
    assert (status.role, status.samples_total, status.error) == (Role.AUXILIARY, 0, None)
    trainers.wait_epochs("alice", 1, group=2)
