"""The training loop with a real optimizer: bad numbers, slow listeners, commands."""

import math
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.swarm.peers import Peer, config_make, training_peer
from training.client.errors import ClientError, ExitCode
from training.client.status import StatusFile
from training.protocol.metrics import PeerMetrics
from training.protocol.states import Command, PeerState, Role
from training.swarm.averaging import is_finite
from training.tasks.registry import task_get
from training.tasks.task import Batch
from training.trainer.devices import Place
from training.trainer.loop import TrainingLoop
from training.trainer.publisher import Publisher
from training.trainer.session import TrainerSession, TrainerStats

pytestmark = pytest.mark.swarm
CONFIG = config_make(target_batch_size=64)
TINY = task_get("tiny")


class Notes:
    """A user interface that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.phases: list[str] = []
        self.stats: list[TrainerStats] = []

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def progress(self, stats: TrainerStats) -> None:
        self.stats.append(stats)

    def line(self, text: str) -> None:
        self.lines.append(text)


class Bench:
    """A loop on a peer of its own, fed with chosen batches."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.peer, self.ui, self.folder = peer, Notes(), folder
        self.reports: list[PeerMetrics] = []
        self.send: Callable[[PeerMetrics], None] = self.reports.append
        self.session = TrainerSession(
            config=CONFIG,
            key=peer.key,
            sign_metrics=lambda metrics: "",
            bootstrap_peers=(),
            min_epoch=0,
            artifacts=folder,
            work_dir=folder,
        )

    def run(self, batches: Iterator[Batch]) -> TrainingLoop:
        assert self.peer.model is not None
        assert self.peer.optimizer is not None
        publisher = Publisher(self.send, seconds=0.01)
        publisher.start()
        loop = TrainingLoop(
            session=self.session,
            task=TINY,
            model=self.peer.model,
            place=Place(torch.device("cpu"), None),
            batches=batches,
            optimizer=self.peer.optimizer,
            publisher=publisher,
            status=StatusFile(self.folder, role=Role.TRAINER),
            ui=self.ui,
        )
        try:
            loop.run()
        finally:
            publisher.stop(timeout=0.5)
        return loop


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with training_peer(tmp_path, CONFIG) as peer:
        yield Bench(peer, tmp_path)


def batches(number: int, *, broken: frozenset[int] = frozenset()) -> Iterator[Batch]:
    stream = TINY.batches(CONFIG, Path(), seed=1, micro_batch=8)
    for place, batch in enumerate(islice(stream, number)):
        if place in broken:
            batch["inputs"][0, 0] = math.nan
        yield batch


def test_epochs_are_counted_published_and_told(bench: Bench) -> None:
    loop = bench.run(batches(26))
    assert loop.samples_total == 26 * 8
    last = bench.reports[-1]
    assert (last.state, last.epoch, last.samples_total) == (PeerState.LEFT, 3, 208)
    assert [(e.epoch, e.samples) for e in last.recent] == [(0, 64), (1, 64), (2, 64)]
    assert last.samples_accumulated == 16
    assert [t.epoch for t in last.timings] == [1, 2], "the newest two"
    alone = [(t.group_size, t.matchmaking, t.averaging) for t in last.timings]
    assert alone == [(1, 0.0, 0.0)] * 2
    assert len([line for line in bench.ui.lines if line.startswith("epoch ")]) == 3
    assert bench.session.control.progress().epoch == 3
    assert bench.ui.phases[0] == "training"
    assert "averaging" in bench.ui.phases


def test_a_bad_micro_step_is_dropped_and_the_rest_counts(bench: Bench) -> None:
    loop = bench.run(batches(12, broken=frozenset({2, 5})))
    assert loop.samples_total == 10 * 8
    assert bench.reports[-1].epoch == 1
    assert len([line for line in bench.ui.lines if "dropped" in line]) == 2
    assert bench.peer.optimizer is not None
    assert is_finite(bench.peer.optimizer.parameters)
    assert all(report.loss is None or math.isfinite(report.loss) for report in bench.reports)


def test_broken_weights_are_replaced_by_the_last_finite_ones(bench: Bench) -> None:
    model, optimizer = bench.peer.model, bench.peer.optimizer
    assert model is not None
    assert optimizer is not None

    def breaking() -> Iterator[Batch]:
        for place, batch in enumerate(batches(12)):
            if place == 4:
                with torch.no_grad(), optimizer.state_averager.lock_averaged_tensors:
                    optimizer.parameters[0].fill_(math.nan)
                optimizer.weights_apply()
            yield batch

    loop = bench.run(breaking())
    assert is_finite([parameter.detach() for parameter in model.parameters()])
    assert loop.samples_total == 11 * 8
    assert any("last finite ones" in line for line in bench.ui.lines)


def test_a_machine_that_computes_nonsense_gives_up(bench: Bench) -> None:
    with pytest.raises(ClientError, match="not finite") as caught:
        bench.run(batches(80, broken=frozenset(range(80))))
    assert caught.value.exit_code is ExitCode.HARDWARE


def test_publishing_that_hangs_does_not_slow_the_training(bench: Bench) -> None:
    bench.send = lambda report: time.sleep(60)
    started = time.monotonic()
    bench.run(batches(6))
    assert time.monotonic() - started < 5


def test_commands_take_effect_between_micro_steps(bench: Bench) -> None:
    control = bench.session.control

    def commanding() -> Iterator[Batch]:
        for place, batch in enumerate(batches(100)):
            if place == 3:
                control.command(Command.RELOAD_STATE)
            if place == 5:
                control.command(Command.FINISH)
            yield batch

    loop = bench.run(commanding())
    assert loop.samples_total == 5 * 8
    assert control.run_is_over
    assert any("the site asks for it" in line for line in bench.ui.lines)
