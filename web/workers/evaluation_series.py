"""Evaluations as columns over the checkpoints: what their chart, its table and its CSV show."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Max

from web.monitoring.trained import samples_by_then
from web.runs.models import Run
from web.workers.evaluation_selectors import metrics_of
from web.workers.models import EvaluationJob

POINTS: Final = 500


@dataclass(frozen=True)
class EvaluationPoint:
    """The figures of one checkpoint, and the samples that it was trained with."""

    lineage: int
    epoch: int
    samples: int
    at: datetime | None
    figures: dict[str, float]


def evaluation_points(run: Run, limit: int = POINTS) -> list[EvaluationPoint]:
    """Return finished evaluations of the newest checkpoints, oldest first, in four queries."""
    done = run.evaluation_jobs.filter(state=EvaluationJob.State.DONE)
    jobs = list(done.defer("examples").prefetch_related("results")[:limit])
    samples = samples_by_then(run, [(job.lineage, job.epoch) for job in jobs])
    return [
        EvaluationPoint(
            lineage=job.lineage,
            epoch=job.epoch,
            samples=samples[job.lineage, job.epoch],
            at=job.finished_at,
            figures=metrics_of(job),
        )
        for job in reversed(jobs)
    ]


def metrics_in(points: list[EvaluationPoint]) -> list[str]:
    """Return the names of all figures, in the order of the task."""
    return list(dict.fromkeys(name for point in reversed(points) for name in point.figures))


def evaluations_version(run: Run) -> str:
    """Return what changes with each finished evaluation (one query)."""
    done = run.evaluation_jobs.filter(state=EvaluationJob.State.DONE)
    found = done.aggregate(count=Count("pk"), last=Max("finished_at"))
    return f"{found['count']}-{found['last'].timestamp() if found['last'] else 0}"
