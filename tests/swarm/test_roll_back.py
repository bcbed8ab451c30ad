"""A real swarm is rolled back: the coordinator restores an older state, trainers begin there."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.swarm.processes import Swarm, wait_until
from tests.swarm.test_coordinator import CONFIG, reached
from training.protocol.config import RunConfig, StartPoint

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(300)]


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    swarm = Swarm(tmp_path, CONFIG)
    yield swarm
    swarm.close()


def checkpoints(swarm: Swarm) -> dict[tuple[int, int], Path]:
    folder = swarm.folder / "coordinator" / "checkpoints"
    named = [path for path in folder.glob("[0-9]*-*") if (path / "manifest.jws").exists()]
    return {(int(p.name.split("-")[0]), int(p.name.split("-")[1])): p for p in named}


def rolled_back(epoch: int, manifest: bytes) -> RunConfig:
    start = StartPoint(lineage=1, epoch=epoch, manifest_sha256=hashlib.sha256(manifest).hexdigest())
    return CONFIG.model_copy(update={"version": 2, "lineage": 2, "start": start})


def test_a_rolled_back_run_goes_on_from_the_older_state_whatever_stragglers_do(
    swarm: Swarm,
) -> None:
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=60)
    swarm.start_trainer("bob", speed=30)
    wait_until("two saved states", lambda: len(checkpoints(swarm)) >= 2, seconds=120)
    (_, chosen), path = min(checkpoints(swarm).items())
    weights = load_file(path / "model.safetensors")
    wait_until("training past it", lambda: reached(swarm, chosen + 3), seconds=90)

    # What a new config does to processes that heed it; bob does not and trains on alone.
    for name in ("coordinator", "alice"):
        swarm.stop(name)
    assert (1, chosen) in checkpoints(swarm), "the last state did not push the chosen one out"
    (swarm.folder / "alice" / "started").unlink()
    swarm.config = rolled_back(chosen, (path / "manifest.jws").read_bytes())
    swarm.start_coordinator()
    swarm.start_trainer("alice", speed=60)
    assert swarm.started_at_epoch("alice") == chosen
    wait_until("the next epoch", lambda: reached_in(swarm, 2, chosen + 1), seconds=90)
    wait_until("a state of the new lineage", lambda: 2 in {k[0] for k in checkpoints(swarm)})
    again = {k: p for k, p in checkpoints(swarm).items() if k[0] == 2}
    (_, epoch), first = min(again.items())
    assert chosen < epoch <= chosen + 2
    moved = distance(weights, load_file(first / "model.safetensors"))
    later = max((k[1], p) for k, p in checkpoints(swarm).items() if k[0] == 1)
    abandoned = distance(load_file(later[1] / "model.safetensors"), load_file(
        first / "model.safetensors"))  # fmt: skip
    assert 0 < moved < abandoned, "it descends from the chosen state, not from the abandoned one"
    swarm.check_alive()


def test_a_coordinator_without_the_state_to_begin_with_does_not_begin(swarm: Swarm) -> None:
    swarm.config = rolled_back(4, b"a manifest that is not here")
    swarm.start_coordinator()
    assert swarm.running["coordinator"].wait(60) == 4
    log = (swarm.folder / "coordinator" / "coordinator.log").read_text()
    assert "the state that this lineage begins with cannot be used" in log


def reached_in(swarm: Swarm, lineage: int, epoch: int) -> bool:
    snapshot = swarm.site.snapshot
    return snapshot is not None and snapshot.lineage == lineage and snapshot.epoch >= epoch


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return float(sum((one[name] - other[name]).pow(2).sum() for name in one)) ** 0.5
