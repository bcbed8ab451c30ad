"""The ``tiny`` task: learns in seconds; for tests and first tries of a set-up."""

from collections.abc import Iterator
from pathlib import Path

import torch
from pydantic import ConfigDict, Field, PositiveInt
from torch.nn.functional import cross_entropy

from training.protocol.base import FrozenModel
from training.protocol.config import RunConfig
from training.tasks.evaluation import EVALUATION_SEED, EvaluationResult, Example, Guess
from training.tasks.task import Batch, params_read, seeded

_EXAMPLES = 3


class TinyParams(FrozenModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    features: PositiveInt = 16
    """Numbers in one sample."""
    hidden: PositiveInt = 32
    """Width of the hidden layer."""
    classes: int = Field(default=4, ge=2)
    """How many answers there are."""


class TinyTask:
    """A two-layer classifier whose labels a fixed random linear map decides."""

    name = "tiny"
    summary = "A classifier on generated data that learns in seconds, for tests"
    params_model = TinyParams

    def model_build(self, config: RunConfig, artifacts: Path) -> torch.nn.Module:
        params = params_read(TinyParams, config)
        with seeded(config.seed):
            return torch.nn.Sequential(
                torch.nn.Linear(params.features, params.hidden),
                torch.nn.LayerNorm(params.hidden),
                torch.nn.Tanh(),
                torch.nn.Linear(params.hidden, params.classes),
            )

    def batches(
        self, config: RunConfig, artifacts: Path, *, seed: int, micro_batch: int
    ) -> Iterator[Batch]:
        params = params_read(TinyParams, config)
        shared = torch.Generator().manual_seed(config.seed + 1)
        truth = torch.randn(params.features, params.classes, generator=shared)
        generator = torch.Generator().manual_seed(seed)
        while True:
            inputs = torch.randn(micro_batch, params.features, generator=generator)
            yield {"inputs": inputs, "labels": (inputs @ truth).argmax(dim=1)}

    def loss(self, model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, int]:
        return cross_entropy(model(batch["inputs"]), batch["labels"]), len(batch["labels"])


def tiny_evaluate(
    model: torch.nn.Module,
    config: RunConfig,
    artifacts: Path,
    *,
    samples: int,
    device: torch.device,
) -> EvaluationResult:
    """Return ``loss`` and ``accuracy`` on samples that nobody trains on."""
    batch = next(TinyTask().batches(config, artifacts, seed=EVALUATION_SEED, micro_batch=samples))
    model.eval()
    with torch.inference_mode():
        logits = model(batch["inputs"].to(device)).float().cpu()
    said, labels = logits.argmax(dim=1), batch["labels"]
    metrics = {
        "loss": float(cross_entropy(logits, labels)),
        "accuracy": float((said == labels).float().mean()),
    }
    examples = [
        Example(f"sample {i + 1}", (Guess(f"class {labels[i]}", f"class {said[i]}"),))
        for i in range(min(_EXAMPLES, samples))
    ]
    return EvaluationResult(metrics, samples, tuple(examples))
