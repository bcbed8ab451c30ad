"""Checkpoints from trainers that are not always there."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from training.client.errors import UNREACHABLE, PlatformError
from training.coordinator.checkpoints import MANIFEST, CheckpointStore
from training.coordinator.keeper import Keeper
from training.protocol.api import CheckpointOut, CheckpointRequest
from training.protocol.claims import CheckpointManifest
from training.protocol.config import CheckpointConfig, RunConfig, StartPoint, TaskConfig
from training.protocol.envelope import peek_body, sign
from training.protocol.keys import key_generate
from training.swarm.dht import SwarmError
from training.swarm.state_files import StateError

CONFIG = RunConfig(
    run="demo",
    title="Demo",
    version=1,
    task=TaskConfig(name="tiny"),
    checkpoint=CheckpointConfig(every_epochs=10, keep=2),
)
DEVICE = key_generate()


def signed(body: BaseModel, typ: str) -> str:
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    return sign(body, typ=typ, key=DEVICE, issuer="x", lifetime=lifetime, now=now)


class Holder:
    """Holds a number for a training state; ``offered`` is what trainers would give."""

    def __init__(self) -> None:
        self.epoch, self.offered = 0, -1
        self.poisoned = False

    def restore(self, folder: Path, *, epoch: int) -> None:
        if (folder / "model.safetensors").read_text() != str(epoch):
            raise StateError("of another model")
        self.epoch = epoch

    def refresh(self, *, min_epoch: int, timeout: float) -> bool:
        if self.poisoned:
            raise StateError("tensor 3 of the state is not finite")
        if self.offered < min_epoch:
            return False
        self.epoch = self.offered
        return True

    def save(self, folder: Path) -> None:
        (folder / "model.safetensors").write_text(str(self.epoch))


class Site:
    def __init__(self) -> None:
        self.is_down = False
        self.epochs: list[int] = []

    def post(self, request: CheckpointRequest) -> CheckpointOut:
        if self.is_down:
            raise PlatformError(UNREACHABLE, "no answer", "Wait.", status=0)
        body = peek_body(request.manifest)
        fields = {k: body[k] for k in CheckpointManifest.model_fields}
        self.epochs.append(fields["epoch"])
        return CheckpointOut.model_validate(fields | {"manifest": request.manifest})


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.holder, self.site = folder, Holder(), Site()

    def keeper(self, config: RunConfig = CONFIG) -> Keeper:
        return Keeper(
            config=config,
            store=CheckpointStore(self.folder / "checkpoints", config=config, sign=signed),
            donor=self.holder,
            post=self.site.post,
            work_dir=self.folder,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_due_checkpoint_is_taken_saved_and_registered(bench: Bench) -> None:
    keeper = bench.keeper()
    bench.holder.offered = 3
    keeper.look(3)
    assert keeper.work()
    assert (keeper.saved, bench.site.epochs) == (3, [3])
    bench.holder.offered = 9
    keeper.look(9)
    assert keeper.work()
    assert keeper.saved == 3


def test_an_empty_swarm_gives_no_checkpoint(bench: Bench) -> None:
    keeper = bench.keeper()
    keeper.look(None)
    assert keeper.work()
    assert keeper.saved is None


def test_trainers_that_do_not_give_a_new_state_are_asked_again(bench: Bench) -> None:
    keeper = bench.keeper()
    keeper.look(20)
    assert not keeper.work()
    assert "no trainer gave its state" in str(keeper.error)
    bench.holder.offered = 18
    assert not keeper.work()
    bench.holder.offered = 19
    assert keeper.work()
    assert (keeper.saved, keeper.error) == (19, None)


def test_a_poisoned_state_is_never_saved(bench: Bench) -> None:
    keeper = bench.keeper()
    bench.holder.offered, bench.holder.poisoned = 20, True
    keeper.look(20)
    assert not keeper.work()
    assert "not finite" in str(keeper.error)
    assert not (bench.folder / "checkpoints").exists()


def test_checkpoints_that_the_site_missed_are_registered_later(bench: Bench) -> None:
    bench.site.is_down = True
    keeper = bench.keeper()
    for epoch in (1, 10):
        bench.holder.offered = epoch
        keeper.look(epoch)
        assert not keeper.work()
    assert keeper.saved == 10
    bench.site.is_down = False
    again = bench.keeper()
    assert again.work()
    assert again.work()
    assert sorted(bench.site.epochs) == [1, 10]


def test_a_restart_takes_the_newest_checkpoint_that_fits(bench: Bench) -> None:
    assert bench.keeper().restore() is None
    keeper = bench.keeper()
    for epoch in (10, 20):
        bench.holder.offered = epoch
        keeper.look(epoch)
        keeper.work()
    again = bench.keeper()
    assert (again.restore(), again.saved) == (20, 20)
    (bench.folder / "checkpoints" / "1-00000020" / "model.safetensors").write_text("junk")
    bench.holder.epoch = 0
    assert (bench.keeper().restore(), bench.holder.epoch) == (10, 10)


def test_leaving_takes_a_last_checkpoint_when_the_trainers_are_further(bench: Bench) -> None:
    keeper = bench.keeper()
    keeper.start()
    bench.holder.offered = 5
    keeper.look(5)
    keeper.finish()
    keeper.wait(5)
    assert (keeper.saved, bench.site.epochs) == (5, [5])
    idle = bench.keeper()
    idle.restore()
    idle.start()
    idle.look(5)
    idle.finish()
    idle.wait(5)
    assert bench.site.epochs == [5]


def rewound(bench: Bench, epoch: int) -> RunConfig:
    """The config of a run that was rolled back to one of the bench's checkpoints."""
    manifest = (bench.folder / "checkpoints" / f"1-{epoch:08d}" / MANIFEST).read_bytes()
    start = StartPoint(lineage=1, epoch=epoch, manifest_sha256=hashlib.sha256(manifest).hexdigest())
    return CONFIG.model_copy(update={"version": 2, "lineage": 2, "start": start})


def test_a_rolled_back_run_begins_with_the_older_state_and_keeps_its_own_from_then_on(
    bench: Bench,
) -> None:
    keeper = bench.keeper()
    for epoch in (10, 20):
        bench.holder.offered = epoch
        keeper.look(epoch)
        keeper.work()
    config = rewound(bench, 10)
    again = bench.keeper(config)
    assert (again.restore(), again.saved, bench.holder.epoch) == (10, 10, 10)
    bench.holder.offered = 20
    again.look(20)
    assert again.work()
    assert (bench.folder / "checkpoints" / "2-00000020").exists()
    assert bench.site.epochs == [10, 20, 20]
    assert bench.keeper(config).restore() == 20, "its own newest state comes first"


def test_a_rolled_back_run_never_begins_with_a_new_model_instead(bench: Bench) -> None:
    keeper = bench.keeper()
    bench.holder.offered = 10
    keeper.look(10)
    keeper.work()
    config = rewound(bench, 10)
    (bench.folder / "checkpoints" / "1-00000010" / "model.safetensors").write_text("junk")
    with pytest.raises(SwarmError, match="cannot be used"):
        bench.keeper(config).restore()
