"""What a task has to offer to the trainer."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from pydantic import BaseModel

from training.protocol.config import RunConfig

P = TypeVar("P", bound=BaseModel)
Batch = dict[str, torch.Tensor]


class TaskError(Exception):
    """The config does not fit the task, or its data cannot be used; ``remedy`` says more."""

    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy


class Task(Protocol):
    """A model with its data and loss.

    ``artifacts`` is a folder with the config's files under their names, hashes checked.
    """

    name: str
    summary: str

    @property
    def params_model(self) -> type[BaseModel]:
        """Return what ``config.task.params`` has to fit."""
        ...

    def model_build(self, config: RunConfig, artifacts: Path) -> torch.nn.Module:
        """Return the untrained model; ``config.seed`` gives every peer the same weights."""
        ...

    def batches(
        self, config: RunConfig, artifacts: Path, *, seed: int, micro_batch: int
    ) -> Iterator[Batch]:
        """Yield batches for ever, in an order of their own for each ``seed``."""
        ...

    def loss(self, model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, int]:
        """Return the mean loss per sample (a scalar with gradient) and the number of samples."""
        ...


def params_read(model: type[P], config: RunConfig) -> P:
    """Return the checked parameters of the config's task.

    Raises:
        TaskError: they do not fit ``model``.
    """
    try:
        return model.model_validate(config.task.params)
    except ValueError as error:
        raise TaskError(
            f"the parameters of task {config.task.name} do not fit: {error}",
            "The run's organiser must publish a corrected config.",
        ) from error


def artifact_path(config: RunConfig, artifacts: Path, name: str) -> Path:
    """Return the file of one of the config's artifacts, stored by name or by content hash.

    Raises:
        TaskError: the config has no such artifact, or the file is not the one it means.
    """
    artifact = next((item for item in config.artifacts if item.name == name), None)
    if artifact is None:
        raise TaskError(
            f"the config has no artifact {name!r}",
            "The run's organiser must publish a config with that file.",
        )
    for path in (artifacts / artifact.name, artifacts / artifact.sha256):
        if path.is_file() and _sha256(path) == artifact.sha256:
            return path
    raise TaskError(f"the artifact {name!r} is missing or damaged", "Join again to download it.")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generator inside the block and put it back after."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
