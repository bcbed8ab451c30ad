"""Checkpoints on disk: whole or not there, checked by hash, the newest few kept.

``<folder>/<lineage>-<epoch>/`` holds the files and ``manifest.jws``, the signed list of them.
A folder gets its name only when everything in it is on the disk.
"""

import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from training.protocol.claims import CheckpointFile, CheckpointManifest
from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, peek_body
from training.protocol.names import TYP_CHECKPOINT

logger = logging.getLogger(__name__)
MANIFEST = "manifest.jws"
SPARE = 2
"""More are on the disk than the site lists: an organiser may choose the oldest listed one to go
back to, while the coordinator that does not know yet saves another two."""
_NAME = re.compile(r"^(\d+)-(\d{8,})$")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files were found as its manifest lists them."""

    path: Path
    epoch: int
    manifest: str
    """JWS of its :class:`CheckpointManifest`."""


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(
        self, folder: Path, *, config: RunConfig, sign: Callable[[BaseModel, str], str]
    ) -> None:
        self._folder, self._config, self._sign = folder, config, sign

    def epochs(self) -> list[int]:
        """Return the epochs of this lineage that have a folder, oldest first."""
        return sorted(self._folders())

    def valid(self) -> Iterator[Checkpoint]:
        """Yield the usable checkpoints of this lineage, newest first."""
        for epoch, path in sorted(self._folders().items(), reverse=True):
            try:
                yield checkpoint_read(path, config=self._config, epoch=epoch)
            except ValueError as error:
                logger.warning(
                    "run %s: checkpoint %s is skipped: %s", self._config.run, path.name, error
                )

    def start(self) -> Checkpoint | None:
        """Return the state that the config makes this lineage begin with; None: it names none.

        Raises:
            ValueError: it is not here, damaged, or another one than the config names.
        """
        start = self._config.start
        if start is None:
            return None
        path = self._folder / f"{start.lineage}-{start.epoch:08d}"
        origin = self._config.model_copy(update={"lineage": start.lineage})
        found = checkpoint_read(path, config=origin, epoch=start.epoch)
        if hashlib.sha256(found.manifest.encode()).hexdigest() != start.manifest_sha256:
            raise ValueError("its manifest is not the one that the config names")
        return found

    def save(self, epoch: int, write: Callable[[Path], None], *, now: datetime) -> Checkpoint:
        """Make the checkpoint of ``epoch`` from the files that ``write`` puts into a folder.

        A checkpoint of the same epoch is replaced. Afterwards only the newest few are left.

        Raises:
            OSError: it cannot be written; nothing has changed then.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clean()
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".saving-") as name:
            draft = Path(name) / "checkpoint"
            draft.mkdir()
            write(draft)
            manifest = CheckpointManifest(
                run=self._config.run,
                lineage=self._config.lineage,
                config_version=self._config.version,
                epoch=epoch,
                saved_at=now,
                files=tuple(_file_entry(path) for path in sorted(draft.iterdir())),
            )
            token = self._sign(manifest, TYP_CHECKPOINT)
            (draft / MANIFEST).write_text(token)
            for path in (*draft.iterdir(), draft):
                _flush(path)
            target = self._folder / f"{self._config.lineage}-{epoch:08d}"
            if target.exists():
                target.rename(Path(name) / "replaced")
            draft.rename(target)
        _flush(self._folder)
        self._prune()
        return Checkpoint(target, epoch, token)

    def _folders(self) -> dict[int, Path]:
        if not self._folder.is_dir():
            return {}
        found = ((_NAME.match(path.name), path) for path in self._folder.iterdir())
        return {
            int(match[2]): path
            for match, path in found
            if match and int(match[1]) == self._config.lineage
        }

    def _prune(self) -> None:
        for epoch in self.epochs()[: -(self._config.checkpoint.keep + SPARE)]:
            shutil.rmtree(self._folders()[epoch], ignore_errors=True)

    def _clean(self) -> None:
        for path in self._folder.glob(".saving-*"):
            shutil.rmtree(path, ignore_errors=True)


def is_due(epoch: int, *, saved: int | None, every: int, last: int | None) -> bool:
    """Whether a swarm in ``epoch`` needs a checkpoint after the one of epoch ``saved``.

    The first one is taken as early as can be, so that no restart begins at epoch 0, and one is
    taken when the run has reached its ``last`` epoch.
    """
    if saved is None:
        return epoch >= 1
    if last is not None and saved < last <= epoch:
        return True
    return epoch // every > saved // every


def checkpoint_read(path: Path, *, config: RunConfig, epoch: int) -> Checkpoint:
    """Return a checkpoint after checking its files against its manifest.

    Raises:
        ValueError: something is missing, damaged, or of another run.
    """
    try:
        token = (path / MANIFEST).read_text()
        body = {k: v for k, v in peek_body(token).items() if k in CheckpointManifest.model_fields}
        manifest = CheckpointManifest.model_validate(body)
        if (manifest.run, manifest.lineage, manifest.epoch) != (config.run, config.lineage, epoch):
            raise ValueError("its manifest is of another run or epoch")
        for file in manifest.files:
            if _file_entry(path / file.name) != file:
                raise ValueError(f"{file.name} is damaged")
    except (OSError, UnicodeDecodeError, EnvelopeError, ValidationError) as error:
        raise ValueError(str(error)) from error
    return Checkpoint(path, epoch, token)


def _file_entry(path: Path) -> CheckpointFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return CheckpointFile(name=path.name, sha256=digest, size=path.stat().st_size)


def _flush(path: Path) -> None:
    """Have a file or folder on the disk, not only in the system's memory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
