"""Checkpoints on disk: whole or not there."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.coordinator.evidence import START, at
from training.coordinator.checkpoints import MANIFEST, CheckpointStore, is_due
from training.protocol.claims import CheckpointManifest
from training.protocol.config import CheckpointConfig, RunConfig, StartPoint, TaskConfig
from training.protocol.envelope import sign, verify
from training.protocol.keys import key_generate
from training.protocol.names import TYP_CHECKPOINT

KEY = key_generate()


def config(lineage: int = 1, keep: int = 2) -> RunConfig:
    return RunConfig(
        run="demo",
        title="Demo",
        version=4,
        lineage=lineage,
        task=TaskConfig(name="tiny"),
        checkpoint=CheckpointConfig(keep=keep),
    )


def signed(body: BaseModel, typ: str) -> str:
    return sign(body, typ=typ, key=KEY, issuer="x", lifetime=timedelta(days=1), now=START)


def store(folder: Path, **changes: int) -> CheckpointStore:
    return CheckpointStore(folder, config=config(**changes), sign=signed)


def writing(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "model.safetensors").write_text(text)
        (folder / "optimizer.safetensors").write_text(text[::-1])

    return write


def test_a_checkpoint_is_saved_with_a_signed_list_of_its_files(tmp_path: Path) -> None:
    saved = store(tmp_path).save(12, writing("abc"), now=at(0))
    assert saved.path == tmp_path / "1-00000012"
    body = verify(
        saved.manifest, typ=TYP_CHECKPOINT, model=CheckpointManifest, keys=[KEY], now=START
    ).body
    assert (body.run, body.epoch, body.config_version) == ("demo", 12, 4)
    assert [(f.name, f.size) for f in body.files] == [
        ("model.safetensors", 3),
        ("optimizer.safetensors", 3),
    ]
    assert list(store(tmp_path).valid()) == [saved]


def test_only_the_newest_few_are_kept(tmp_path: Path) -> None:
    for epoch in (1, 10, 20, 30, 40, 50):
        store(tmp_path).save(epoch, writing("abc"), now=at(0))
    assert store(tmp_path).epochs() == [20, 30, 40, 50], "two more than are listed"


@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "no manifest", "bad manifest"])
def test_a_damaged_checkpoint_is_skipped_and_the_one_before_is_used(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = store(tmp_path).save(10, writing("abc"), now=at(0))
    broken = store(tmp_path).save(20, writing("abcdef"), now=at(0)).path
    model, manifest = broken / "model.safetensors", broken / MANIFEST
    {
        "cut": lambda: model.write_text("abc"),
        "changed": lambda: model.write_text("abcdeX"),
        "missing": model.unlink,
        "no manifest": manifest.unlink,
        "bad manifest": lambda: manifest.write_bytes(b"\xff.x.y"),
    }[damage]()
    assert list(store(tmp_path).valid()) == [kept]
    assert "1-00000020 is skipped" in caplog.text


def test_a_checkpoint_under_another_epochs_name_is_not_believed(tmp_path: Path) -> None:
    saved = store(tmp_path).save(10, writing("abc"), now=at(0))
    saved.path.rename(tmp_path / "1-00000099")
    assert list(store(tmp_path).valid()) == []


def test_another_lineage_is_neither_used_nor_removed(tmp_path: Path) -> None:
    store(tmp_path, lineage=1).save(50, writing("old"), now=at(0))
    new = store(tmp_path, lineage=2, keep=1)
    for epoch in (1, 2, 3, 4):
        new.save(epoch, writing("new"), now=at(0))
    assert new.epochs() == [2, 3, 4]
    assert store(tmp_path, lineage=1).epochs() == [50]


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path) -> None:
    def full(_folder: Path) -> None:
        raise OSError(28, "No space left on device")

    kept = store(tmp_path).save(10, writing("abc"), now=at(0))
    with pytest.raises(OSError, match="No space"):
        store(tmp_path).save(20, full, now=at(0))
    assert [path.name for path in tmp_path.iterdir()] == [kept.path.name]


def test_drafts_of_a_killed_process_are_cleaned_and_the_same_epoch_is_replaced(
    tmp_path: Path,
) -> None:
    (tmp_path / ".saving-dead" / "checkpoint").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    store(tmp_path).save(10, writing("abc"), now=at(0))
    again = store(tmp_path).save(10, writing("xyz"), now=at(5))
    assert (again.path / "model.safetensors").read_text() == "xyz"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-00000010", "notes"]


def begin_at(folder: Path, epoch: int, manifest: str) -> CheckpointStore:
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    start = StartPoint(lineage=1, epoch=epoch, manifest_sha256=digest)
    rewound = config(lineage=2).model_copy(update={"start": start})
    return CheckpointStore(folder, config=rewound, sign=signed)


def test_a_lineage_begins_with_the_state_that_its_config_names(tmp_path: Path) -> None:
    kept = store(tmp_path).save(10, writing("abc"), now=at(0))
    store(tmp_path).save(20, writing("harm"), now=at(0))
    rewound = begin_at(tmp_path, 10, kept.manifest)
    assert rewound.start() == kept
    assert list(rewound.valid()) == [], "the other lineage's states are not its own"
    assert store(tmp_path).start() is None


def test_a_lineage_does_not_begin_with_any_other_state(tmp_path: Path) -> None:
    kept = store(tmp_path).save(10, writing("abc"), now=at(0))
    with pytest.raises(ValueError, match="not the one"):
        begin_at(tmp_path, 10, "another").start()
    with pytest.raises(ValueError, match="No such file"):
        begin_at(tmp_path, 11, kept.manifest).start()
    (kept.path / "model.safetensors").write_text("xyz")
    with pytest.raises(ValueError, match="damaged"):
        begin_at(tmp_path, 10, kept.manifest).start()


def test_no_folder_means_no_checkpoint(tmp_path: Path) -> None:
    assert store(tmp_path / "none").epochs() == []


@pytest.mark.parametrize(
    ("epoch", "saved", "last", "due"),
    [
        (0, None, None, False),
        (1, None, None, True),
        (9, 1, None, False),
        (10, 1, None, True),
        (19, 11, None, False),
        (20, 11, None, True),
        (57, 40, None, True),
        (25, 20, 25, True),
        (26, 25, 25, False),
    ],
)
def test_a_checkpoint_is_due_at_once_then_regularly_and_at_the_end(
    epoch: int, saved: int | None, last: int | None, due: bool
) -> None:
    assert is_due(epoch, saved=saved, every=10, last=last) is due
