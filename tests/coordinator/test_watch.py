"""One look after another: books, journal, snapshot."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.coordinator.evidence import at, key_of, progress
from training.coordinator.watch import Senses, Watch
from training.protocol.config import RunConfig, TaskConfig
from training.swarm.records import MetricsRecord, ProgressRecord

CONFIG = RunConfig(run="demo", title="Demo", version=1, task=TaskConfig(name="tiny"))


class World:
    """Records to be seen, and a swarm that may not answer."""

    def __init__(self, journal: Path) -> None:
        self.journal, self.is_silent = journal, False
        self.records: list[ProgressRecord] = []

    def push(self, *records: ProgressRecord) -> None:
        self.records += records

    def watch(self, *, last_epoch: int = 0) -> Watch:
        senses = Senses(
            progress=self._progress,
            metrics=self._metrics,
            direct=lambda: {"alice": "/ip4/10.0.0.1/tcp/1/p2p/alice"},
            own_addresses=("/ip4/10.0.0.9/tcp/9/p2p/own",),
        )
        return Watch(config=CONFIG, senses=senses, journal=self.journal, last_epoch=last_epoch)

    def _progress(self) -> Sequence[ProgressRecord]:
        taken, self.records = self.records, []
        return taken

    def _metrics(self) -> Sequence[MetricsRecord]:
        if self.is_silent:
            raise TimeoutError
        return []


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.json")


def test_a_look_gives_a_snapshot_of_peers_entrances_and_finished_epochs(world: World) -> None:
    watch = world.watch()
    world.push(progress("alice", 0, 90, 0), progress("alice", 1, 10, 5))
    assert watch.look(at(5), acknowledged=None).num_finished == 0
    world.push(progress("alice", 1, 50, 12))
    sight = watch.look(at(12), acknowledged=None)
    snapshot = sight.snapshot(7)
    assert (snapshot.seq, snapshot.epoch, snapshot.samples_accumulated) == (7, 1, 50)
    assert [(r.epoch, r.work[0].samples) for r in snapshot.finished_epochs] == [(0, 90)]
    assert snapshot.bootstrap_peers == (
        "/ip4/10.0.0.9/tcp/9/p2p/own",
        "/ip4/10.0.0.1/tcp/1/p2p/alice",
    )
    assert sight.num_finished == 1
    assert watch.look(at(14), acknowledged=0).snapshot(8).finished_epochs == ()


def test_the_journal_is_on_disk_before_anything_is_told(world: World) -> None:
    watch = world.watch()
    world.push(progress("alice", 0, 90, 0), progress("alice", 1, 10, 5))
    watch.look(at(12), acknowledged=None)
    again = world.watch()
    assert again.look(at(13), acknowledged=None).snapshot(1).finished_epochs[0].epoch == 0


def test_a_swarm_that_does_not_answer_leaves_the_last_good_picture(world: World) -> None:
    watch = world.watch()
    world.is_silent = True
    world.push(progress("alice", 3, 10, 0))
    sight = watch.look(at(1), acknowledged=None)
    assert isinstance(sight.trouble, TimeoutError)
    assert (sight.figures.epoch, sight.figures.samples_accumulated) == (3, 10)


def test_an_empty_swarm_stays_at_the_epoch_of_its_checkpoint(world: World) -> None:
    assert world.watch(last_epoch=40).look(at(0), acknowledged=None).figures.epoch == 40


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"version": 9}'])
def test_a_damaged_journal_does_not_prevent_the_start(
    world: World, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    world.journal.write_bytes(content)
    assert world.watch().book.pending == ()
    assert "the journal cannot be used" in caplog.text


def test_a_journal_that_cannot_be_written_does_not_end_the_watch(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.journal.mkdir()
    (world.journal / "in the way").touch()
    world.push(progress("alice", 3, 10, 0))
    sight = world.watch().look(at(1), acknowledged=None)
    assert sight.snapshot(1).peers[0].key_thumbprint == key_of("alice")
    assert "cannot be written" in caplog.text
