"""Measuring a saved model: what a task's evaluation returns, and how the model is read."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model

from training.protocol.config import RunConfig
from training.tasks.task import TaskError

EVALUATION_SEED = 20_200_607
"""All checkpoints are asked the same questions."""
_REMEDY = "Choose a checkpoint of this run, saved with this config."


@dataclass(frozen=True)
class Guess:
    """What was hidden from the model, and what it said."""

    hidden: str
    guess: str


@dataclass(frozen=True)
class Example:
    """A sample for people to look at; its gaps are the guesses, in order."""

    text: str
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class EvaluationResult:
    """Figures by name (means over samples) and a few examples."""

    metrics: dict[str, float]
    num_samples: int
    examples: tuple[Example, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


class Evaluate(Protocol):
    """A task's evaluation; the same questions for every model."""

    def __call__(
        self,
        model: torch.nn.Module,
        config: RunConfig,
        artifacts: Path,
        *,
        samples: int,
        device: torch.device,
    ) -> EvaluationResult:
        """Return what the model, which lies on ``device``, makes of ``samples`` or a few more."""
        ...


def model_load(model: torch.nn.Module, path: Path) -> None:
    """Read a safetensors file into the model.

    Raises:
        TaskError: unreadable, of another model, or not finite.
    """
    try:
        missing, unexpected = load_model(model, str(path))
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0][:200]
        raise TaskError(f"{path.name} does not fit the run's model: {first}", _REMEDY) from error
    if missing or unexpected:
        names = sorted([*missing, *unexpected])[:3]
        raise TaskError(f"{path.name} does not fit the run's model: {names}", _REMEDY)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in model.state_dict().values()):
        raise TaskError(f"{path.name} holds values that are not finite", _REMEDY)
