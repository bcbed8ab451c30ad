"""Takes checkpoints from the trainers, and tells the site of them."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from training.client.errors import ClientError
from training.client.files import json_read, json_write
from training.coordinator.checkpoints import Checkpoint, CheckpointStore, is_due
from training.coordinator.report import wait_seconds
from training.protocol.api import CheckpointOut, CheckpointRequest
from training.protocol.config import RunConfig
from training.swarm.dht import SwarmError
from training.swarm.state_files import StateError

logger = logging.getLogger(__name__)
_DOWNLOAD_SECONDS = 60.0
_LAST_DOWNLOAD_SECONDS = 6.0


class StateHolder(Protocol):
    """What holds the training state: the donor."""

    @property
    def epoch(self) -> int: ...

    def restore(self, folder: Path, *, epoch: int) -> None: ...

    def refresh(self, *, min_epoch: int, timeout: float) -> bool: ...

    def save(self, folder: Path) -> None: ...


class Keeper:
    """The thread that keeps checkpoints."""

    def __init__(
        self,
        *,
        config: RunConfig,
        store: CheckpointStore,
        donor: StateHolder,
        post: Callable[[CheckpointRequest], CheckpointOut],
        work_dir: Path,
    ) -> None:
        self._config, self._store, self._donor, self._post = config, store, donor, post
        self._registered = _Registered(work_dir / "registered.json")
        self._swarm_epoch: int | None = None
        self._wake = threading.Event()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
        self.saved: int | None = None
        """Epoch of the newest checkpoint."""
        self.error: Exception | None = None
        """Why the newest attempt failed; None once one succeeded."""

    def restore(self) -> int | None:
        """Give the donor the newest usable checkpoint; return its epoch, None without one.

        Raises:
            SwarmError: the state that the config makes this lineage begin with is not usable.
        """
        for checkpoint in self._store.valid():
            try:
                self._donor.restore(checkpoint.path, epoch=checkpoint.epoch)
            except StateError as error:
                logger.warning("checkpoint %s is skipped: %s", checkpoint.path.name, error)
                continue
            self.saved = checkpoint.epoch
            logger.info("run %s: restored epoch %d", self._config.run, checkpoint.epoch)
            return checkpoint.epoch
        return self._begin()

    def _begin(self) -> int | None:
        """Give the donor the state that the lineage begins with, if the config names one."""
        try:
            start = self._store.start()
            if start is None:
                return None
            self._donor.restore(start.path, epoch=start.epoch)
        except (ValueError, StateError) as error:
            # Beginning with a new model instead would throw away what everybody trained.
            raise SwarmError(
                f"the state that this lineage begins with cannot be used: {error}",
                "Put its folder back among the checkpoints, or roll back to another state.",
            ) from error
        self.saved = start.epoch
        logger.info("run %s: begins with epoch %d", self._config.run, start.epoch)
        return start.epoch

    def start(self) -> None:
        self._thread.start()

    def look(self, epoch: int | None) -> None:
        """Tell the epoch of the trainers; None when there are none. Returns at once."""
        self._swarm_epoch = epoch
        self._wake.set()

    def finish(self) -> None:
        """Take a last checkpoint if the trainers are further; returns at once."""
        self._leaving.set()
        self._wake.set()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the thread after :meth:`finish`."""
        self._thread.join(seconds)

    def _run(self) -> None:
        failures = 0
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._leaving.is_set():
                break
            failures = 0 if self.work() else failures + 1
            if failures:
                self._leaving.wait(wait_seconds(failures - 1, 0.5))
        epoch = self._swarm_epoch
        if epoch is not None and epoch > max(0, self.saved or 0):
            self._attempt(lambda: self.take(epoch, timeout=_LAST_DOWNLOAD_SECONDS))
        self._attempt(self.register)

    def work(self) -> bool:
        """Do what is due; tell whether nothing is left undone. Never raises."""
        epoch, every = self._swarm_epoch, self._config.checkpoint.every_epochs
        taken, last = None, self._config.max_epochs
        if epoch is not None and is_due(epoch, saved=self.saved, every=every, last=last):
            taken = self._attempt(lambda: self.take(epoch, timeout=_DOWNLOAD_SECONDS))
        registered = self._attempt(self.register)
        self.error = taken or registered
        return self.error is None

    def take(self, epoch: int, *, timeout: float) -> None:
        """Download the state of about ``epoch`` from a trainer and save it.

        Raises:
            StateError: no trainer gave a state that is new and sound.
            OSError: it cannot be written.
        """
        newest = -1 if self.saved is None else self.saved
        if not self._donor.refresh(min_epoch=max(newest + 1, epoch - 1), timeout=timeout):
            raise StateError(f"no trainer gave its state of epoch {epoch}")
        self._save()

    def register(self) -> None:
        """Tell the site of every checkpoint that it does not know.

        Raises:
            ClientError: the site cannot be reached or refused.
        """
        on_disk = [f"{self._config.lineage}-{epoch:08d}" for epoch in self._store.epochs()]
        if self._registered.has_all(on_disk):
            return
        for checkpoint in self._store.valid():
            if not self._registered.has_all([checkpoint.path.name]):
                self._post(CheckpointRequest(manifest=checkpoint.manifest))
                self._registered.add(checkpoint.path.name, on_disk)

    def _save(self) -> Checkpoint:
        donor = self._donor
        checkpoint = self._store.save(donor.epoch, donor.save, now=datetime.now(UTC))
        self.saved = checkpoint.epoch
        logger.info("run %s: checkpoint of epoch %d saved", self._config.run, checkpoint.epoch)
        return checkpoint

    def _attempt(self, do: Callable[[], object]) -> Exception | None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - it is tried again, and the swarm goes on
            if str(error) != str(self.error):
                logger.warning("run %s: checkpoint: %s", self._config.run, error)
            return error
        return None


class _Registered:
    """Names of checkpoints that the site knows, on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._names = set((json_read(path) or {}).get("names", []))
        except ClientError:
            self._names = set()

    def has_all(self, names: list[str]) -> bool:
        return self._names >= set(names)

    def add(self, name: str, on_disk: list[str]) -> None:
        """Note a name, and forget those that are no longer on the disk."""
        self._names = (self._names | {name}) & set(on_disk)
        json_write(self._path, {"names": sorted(self._names)})
