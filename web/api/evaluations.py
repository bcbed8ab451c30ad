"""Evaluations of a run's checkpoints, for everybody who may see the run."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from web.accounts.names import public_name
from web.api.auth import optional_auth
from web.api.caching import cacheable
from web.api.paging import Page, PageQuery, page_of
from web.runs.selectors import run_get_visible
from web.workers.evaluation_selectors import evaluation_jobs, metrics_of
from web.workers.models import EvaluationJob

router = Router(auth=optional_auth)


class GuessOut(Schema):
    hidden: str
    guess: str


class ExampleOut(Schema):
    text: str
    """With a gap, `____`, for each guess."""
    guesses: list[GuessOut]


class EvaluationOut(Schema):
    lineage: int
    epoch: int
    config_version: int
    state: str
    asked_at: datetime
    by: str
    """Empty: the run's config asked for it."""
    at: datetime | None
    seconds: float | None
    num_samples: int
    metrics: dict[str, float]
    examples: list[ExampleOut]


@router.get("runs/{slug}/evaluations/", response=Page[EvaluationOut])
@cacheable(5)
def evaluations(request: HttpRequest, slug: str, page: Query[PageQuery]) -> dict[str, Any]:
    """What saved states of the model could do, newest first.

    `metrics` are means over held-out samples, the same ones for each checkpoint; why one failed
    is told at the desk.
    """
    jobs = evaluation_jobs(run_get_visible(request.user, slug))
    return page_of(jobs, page, order="-id", item=_row)


def _row(job: EvaluationJob) -> dict[str, Any]:
    return {
        "lineage": job.lineage,
        "epoch": job.epoch,
        "config_version": job.config_version,
        "state": job.state,
        "asked_at": job.asked_at,
        "by": public_name(job.asked_by) if job.asked_by else "",
        "at": job.finished_at,
        "seconds": job.seconds,
        "num_samples": job.num_samples,
        "metrics": metrics_of(job),
        "examples": job.examples,
    }
