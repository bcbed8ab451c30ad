"""What a task has to offer to the trainer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import BaseModel

from training.protocol.config import RunConfig

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
    params_model: type[BaseModel]

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


def params_read(task: Task, config: RunConfig) -> Any:
    """Return the task's checked parameters.

    Raises:
        TaskError: the config's parameters do not fit ``task.params_model``.
    """
    try:
        return task.params_model.model_validate(config.task.params)
    except ValueError as error:
        raise TaskError(
            f"the parameters of task {task.name} do not fit: {error}",
            "The run's organiser must publish a corrected config.",
        ) from error
