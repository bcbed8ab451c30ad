"""The coordinator's copy of the training state, among real peers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.config import OptimizerConfig, RunConfig, SwarmConfig, TaskConfig
from training.swarm.dht import dht_start, dht_stop, visible_addresses
from training.swarm.donor import Donor
from training.swarm.state_files import StateError
from training.swarm.state_take import state_take
from training.tasks.optim import optimizer_build, scheduler_build
from training.tasks.registry import task_get

pytestmark = [pytest.mark.swarm, pytest.mark.filterwarnings("default")]

CONFIG = RunConfig(
    run="demo",
    title="Demo",
    version=1,
    task=TaskConfig(name="tiny"),
    optimizer=OptimizerConfig(learning_rate=0.01, total_epochs=100),
    swarm=SwarmConfig(matchmaking_seconds=1.5, request_timeout_seconds=1),
)


class Peer:
    """A donor with the parts that a test looks at."""

    def __init__(self, folder: Path, name: str, initial_peers: list[str]) -> None:
        key = swarm_key_load_or_create(folder / name)
        self.dht = dht_start(
            key=key,
            run_id=CONFIG.swarm_id,
            initial_peers=initial_peers,
            bind="127.0.0.1",
            port=0,
            client_mode=False,
        )
        self.model = task_get("tiny").model_build(CONFIG, folder)
        groups, factory = optimizer_build(CONFIG.optimizer, self.model)
        self.donor = Donor(
            dht=self.dht,
            run_id=CONFIG.swarm_id,
            swarm=CONFIG.swarm,
            model=self.model,
            param_groups=groups,
            optimizer_factory=factory,
            scheduler_factory=scheduler_build(CONFIG.optimizer),
        )

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        return self.donor._averager.optimizer

    def fill(self, value: float) -> None:
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.fill_(value)
                for tensor in self.optimizer.state[parameter].values():
                    tensor.fill_(value / 1e9)

    def offer(self, folder: Path, epoch: int) -> None:
        """Give this state to others as one of ``epoch``."""
        folder.mkdir()
        self.donor.save(folder)
        self.donor.restore(folder, epoch=epoch)

    def stop(self) -> None:
        self.donor.stop()
        dht_stop(self.dht)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer]]:
    folder = tmp_path_factory.mktemp("keys")
    giver = Peer(folder, "giver", [])
    taker = Peer(folder, "taker", visible_addresses(giver.dht))
    yield giver, taker
    taker.stop()
    giver.stop()


def test_states_travel_whole_and_never_backwards(peers: tuple[Peer, Peer], tmp_path: Path) -> None:
    giver, taker = peers
    assert not taker.donor.refresh(min_epoch=0, timeout=20)
    assert not taker.donor.is_giving
    giver.fill(0.25)
    giver.offer(tmp_path / "six", 6)
    assert not taker.donor.refresh(min_epoch=7, timeout=20)
    assert taker.donor.refresh(min_epoch=5, timeout=20)
    assert (taker.donor.epoch, taker.donor.is_giving) == (6, True)
    assert all(torch.equal(p, torch.full_like(p, 0.25)) for p in taker.model.parameters())
    for parameter in taker.model.parameters():
        for tensor in taker.optimizer.state[parameter].values():
            assert torch.equal(tensor, torch.full_like(tensor, 0.25 / 1e9))
    # The schedule is where epoch 6 has it: a linear decay over 100 epochs.
    assert taker.optimizer.param_groups[0]["lr"] == pytest.approx(0.01 * 0.94)
    giver.donor._averager.local_epoch = 3
    assert not taker.donor.refresh(min_epoch=0, timeout=20)
    assert taker.donor.epoch == 6


def test_a_poisoned_state_is_refused_and_the_old_one_is_kept(
    peers: tuple[Peer, Peer], tmp_path: Path
) -> None:
    giver, taker = peers
    giver.fill(0.5)
    giver.offer(tmp_path / "eight", 8)
    assert taker.donor.refresh(min_epoch=8, timeout=20)
    giver.donor._averager.local_epoch = 9
    parameter = next(iter(giver.model.parameters()))
    with torch.no_grad():
        parameter.view(-1)[0] = float("nan")
    with pytest.raises(StateError, match="not finite"):
        taker.donor.refresh(min_epoch=9, timeout=20)
    with torch.no_grad():
        parameter.fill_(0.5)
    giver.optimizer.param_groups[0]["lr"] = float("inf")
    with pytest.raises(StateError, match="not finite"):
        taker.donor.refresh(min_epoch=9, timeout=20)
    assert taker.donor.epoch == 8
    assert all(torch.equal(p, torch.full_like(p, 0.5)) for p in taker.model.parameters())


@pytest.mark.parametrize(
    ("metadata", "message"),
    [({}, "malformed"), ({"optimizer_metadata": [{"type": "tensor", "index": 0}]}, "does not fit")],
)
def test_a_state_of_another_kind_is_refused(
    peers: tuple[Peer, Peer], metadata: dict[str, object], message: str
) -> None:
    _, taker = peers
    averager = taker.donor._averager
    _, tensors, _ = averager.get_current_state()
    with pytest.raises(StateError, match=message):
        state_take(averager, [tensor.clone() for tensor in tensors], metadata)
    with pytest.raises(StateError, match="other shapes"):
        state_take(averager, [torch.zeros(3)], metadata)
