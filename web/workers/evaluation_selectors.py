"""Reads of evaluations: as tables of figures by checkpoint, and examples for people's eyes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from web.runs.models import Run
from web.workers.models import EvaluationJob

GAP: Final = "____"
METRIC_WORDS: Final[Mapping[str, str]] = {
    "mlm_loss": "Masked-word loss",
    "mlm_accuracy": "Masked words right",
    "sop_accuracy": "Sentence order right",
    "loss": "Loss",
    "accuracy": "Right",
}


@dataclass(frozen=True)
class Part:
    """A piece of an example: plain text, or a guess beside what was hidden."""

    text: str = ""
    guess: str = ""
    hidden: str = ""

    @property
    def is_right(self) -> bool:
        return self.guess == self.hidden


def evaluation_jobs(run: Run) -> QuerySet[EvaluationJob]:
    """Return a run's evaluations with their figures, the newest checkpoint first."""
    return run.evaluation_jobs.select_related("asked_by").prefetch_related("results")


def metrics_of(job: EvaluationJob) -> dict[str, float]:
    """Return the figures of one evaluation (prefetched), in the order of the task."""
    return {result.metric: result.value for result in job.results.all()}


def evaluation_table(run: Run, limit: int) -> dict[str, Any]:
    """Return ``columns`` (words) and ``rows`` of finished evaluations (two queries)."""
    jobs = list(evaluation_jobs(run).filter(state=EvaluationJob.State.DONE)[:limit])
    figures = [metrics_of(job) for job in jobs]
    names = list(dict.fromkeys(name for row in figures for name in row))
    rows = [
        {
            "job": job,
            "cells": [figure_text(name, row.get(name)) for name in names],
            "examples": [example_parts(example) for example in job.examples],
        }
        for job, row in zip(jobs, figures, strict=True)
    ]
    return {"columns": [metric_words(name) for name in names], "rows": rows}


def metric_words(name: str) -> str:
    return METRIC_WORDS.get(name, name.replace("_", " ").capitalize())


def figures_text(job: EvaluationJob) -> str:
    """Return the figures of one evaluation in a line."""
    cells = (f"{metric_words(n)} {figure_text(n, v)}" for n, v in metrics_of(job).items())
    return " · ".join(cells)


def example_parts(example: Mapping[str, Any]) -> list[Part]:
    """Return an example with its guesses put into its gaps; those without a gap come last. Pure."""
    guesses = [Part(guess=g["guess"], hidden=g["hidden"]) for g in example.get("guesses", ())]
    pieces = str(example.get("text", "")).split(GAP)
    parts: list[Part] = []
    for number, piece in enumerate(pieces):
        parts += [Part(text=piece)] if piece.strip() else []
        if number < len(pieces) - 1 and guesses:
            parts.append(guesses.pop(0))
    return [*parts, *guesses]


def jobs_by_checkpoint(jobs: Iterable[EvaluationJob]) -> dict[tuple[int, int], EvaluationJob]:
    """Return jobs by lineage and epoch."""
    return {(job.lineage, job.epoch): job for job in jobs}


def is_share(metric: str) -> bool:
    """Whether a figure is a share, from 0 to 1."""
    return metric.endswith("accuracy")


def figure_text(metric: str, value: float | None) -> str:
    """Return a figure as people read it."""
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if is_share(metric) else f"{value:.3f}"
