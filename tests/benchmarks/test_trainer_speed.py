"""Samples per second of one trainer between averaging rounds, against a bare PyTorch loop.

Same model, batches and threads, in turns, in one process. Run with ``-m benchmark -s``.
"""

import copy
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.swarm.conftest import _no_leftovers  # noqa: F401 - a fixture for every test here
from tests.swarm.peers import Peer, training_peer
from tests.tasks.demo import demo_config
from training.client.status import StatusFile
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.metrics import PeerMetrics
from training.protocol.names import TYP_METRICS
from training.protocol.states import Role
from training.swarm.dht import metrics_store
from training.tasks.registry import task_get
from training.tasks.task import Batch
from training.trainer.devices import Place
from training.trainer.loop import TrainingLoop
from training.trainer.publisher import Publisher
from training.trainer.session import TrainerSession, TrainerStats

MICRO_BATCH, STEPS, TURNS = 32, 12, 8
CPU = Place(torch.device("cpu"), None)
TASK = task_get("albert")


class SilentUI:
    def phase(self, text: str) -> None: ...

    def progress(self, stats: TrainerStats) -> None: ...

    def line(self, text: str) -> None: ...


def bare_loop(model: torch.nn.Module, batches: list[Batch]) -> None:
    """What anybody would write: gradients add up in ``.grad``."""
    for batch in batches:
        loss, _ = TASK.loss(model, batch)
        loss.backward()
        loss.item()


class Trainer:
    """The real loop with everything that runs beside it, fed with finite batches."""

    def __init__(self, peer: Peer, config: RunConfig, folder: Path) -> None:
        device = key_generate()
        self.peer = peer
        self.session = TrainerSession(
            config=config,
            key=peer.key,
            sign_metrics=lambda metrics: sign(
                metrics,
                typ=TYP_METRICS,
                key=device,
                issuer="http://site",
                lifetime=timedelta(minutes=2),
                now=datetime.now(UTC),
            ),
            bootstrap_peers=(),
            min_epoch=0,
            artifacts=folder,
            work_dir=folder,
        )
        self.status = StatusFile(folder, role=Role.TRAINER)
        self.publisher: Publisher[PeerMetrics] = Publisher(self.publish, seconds=2.0)
        self.status.start()
        self.publisher.start()

    def publish(self, metrics: PeerMetrics) -> None:
        metrics_store(
            self.peer.dht,
            run_id=self.session.config.swarm_id,
            key=self.peer.key,
            metrics_jws=self.session.sign_metrics(metrics),
            metrics=metrics,
            expires_seconds=60,
        ).result(10)

    def run(self, batches: list[Batch]) -> None:
        assert self.peer.model is not None
        assert self.peer.optimizer is not None
        TrainingLoop(
            session=self.session,
            task=TASK,
            model=self.peer.model,
            place=CPU,
            batches=iter(batches),
            optimizer=self.peer.optimizer,
            publisher=self.publisher,
            status=self.status,
            ui=SilentUI(),
        ).run()

    def stop(self) -> None:
        self.publisher.stop(timeout=3)
        self.status.stop()


@pytest.mark.benchmark
@pytest.mark.swarm
@pytest.mark.timeout(600)
def test_speed_of_a_trainer_against_a_bare_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)
    config = demo_config(tmp_path)
    endless = config.swarm.model_copy(update={"target_batch_size": 10**9})
    config = config.model_copy(update={"swarm": endless})
    stream = TASK.batches(config, tmp_path, seed=1, micro_batch=MICRO_BATCH)
    wall: dict[str, list[float]] = {"bare": [], "beeyard": []}
    with training_peer(tmp_path, config) as peer:
        bare = copy.deepcopy(peer.model)
        assert bare is not None
        trainer = Trainer(peer, config, tmp_path)
        ways = {"bare": lambda b: bare_loop(bare, b), "beeyard": trainer.run}
        for way in ways.values():
            way(list(islice(stream, 3)))  # warm up
        for turn in range(TURNS):
            batches = list(islice(stream, STEPS))
            for name in sorted(ways, reverse=turn % 2 == 0):
                started = time.perf_counter()
                ways[name](batches)
                wall[name].append(time.perf_counter() - started)
        trainer.stop()
    samples = STEPS * MICRO_BATCH
    ratios = [b / t for b, t in zip(wall["bare"], wall["beeyard"], strict=True)]
    lines = ["", f"{'loop':10}{'samples/s, median of ' + str(TURNS):>28}"]
    for name, times in wall.items():
        lines.append(f"{name:10}{samples / statistics.median(times):28.1f}")
    turns = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    lines.append(f"beeyard / bare, median of turns: {statistics.median(ratios):.3f} ({turns})")
    with capsys.disabled():
        sys.stdout.write("\n".join(lines) + "\n")
    assert len(ratios) == TURNS
