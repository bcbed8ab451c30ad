"""The past of a run: columns for charts, marks, and the swarm as it was."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import AfterValidator, Field

from training.protocol.errors import ErrorCode
from web.api.auth import optional_auth
from web.api.caching import cacheable
from web.api.run_schemas import MarksOut, SwarmOut
from web.core.errors import AppError
from web.monitoring.marks import run_marks
from web.monitoring.replay import run_throughput, swarm_at
from web.monitoring.rollup import columns_round
from web.monitoring.selectors import run_series
from web.monitoring.series import (
    MAX_POINTS,
    POINTS,
    TIME_METRICS,
    points_that_fit,
    run_series_by_epoch,
    run_series_by_lineage,
)
from web.runs.models import Run
from web.runs.selectors import run_get_visible

router = Router(auth=optional_auth)
MAX_EPOCH = 2**31 - 1


def _instant(value: datetime) -> datetime:
    """Return an instant that databases can compare with; one without a zone is in UTC."""
    if not 1970 <= value.year < 9999:  # beside these, changing the zone overflows
        raise ValueError("an instant lies between the years 1970 and 9998")
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Instant = Annotated[datetime, AfterValidator(_instant)]
From = Annotated[Instant | None, Query(alias="from")]
To = Annotated[Instant | None, Query(alias="to")]
Points = Annotated[int, Query(ge=2, le=MAX_POINTS)]


class SeriesQuery(Schema):
    """What is asked of a run's history."""

    metrics: str = "loss,samples_per_second,num_peers"
    start: Instant | None = Field(None, alias="from")
    end: Instant | None = Field(None, alias="to")
    points: int = Field(POINTS, ge=2, le=MAX_POINTS)
    by: str = "time"
    lineage: str = ""
    first: int | None = Field(None, ge=0, le=MAX_EPOCH)
    last: int | None = Field(None, ge=0, le=MAX_EPOCH)


@router.get("runs/{slug}/series/", response=dict[str, list[float | None]])
@cacheable(5)
def series(request: HttpRequest, slug: str, asked: Query[SeriesQuery]) -> HttpResponse:
    """History in columns: `t` in seconds since 1970, then each metric.

    `metrics`: loss, samples_per_second, num_peers, epoch, samples_total. Thinned out so that
    lowest and highest values survive; an answer stays below 60 kB, so that many metrics have
    fewer points than asked. `by=epoch` answers finished epochs instead, from `first` to `last`:
    `epoch`, then loss, samples_per_second, num_peers, samples, seconds, and how trainers spent
    it: computing_seconds, matchmaking_seconds, averaging_seconds, waiting_seconds,
    averaged_share, num_timed. `lineage` is a number, empty for the newest, or `all`: then a
    column `lineage` comes first.
    """
    found = run_get_visible(request.user, slug)
    names = list(dict.fromkeys(n.strip() for n in asked.metrics.split(",") if n.strip()))
    if asked.by == "epoch":
        return _columns(_by_epoch(found, names, asked))
    if asked.by != "time":
        raise AppError(ErrorCode.BODY_INVALID, "by: time or epoch.")
    names = names or list(TIME_METRICS)
    points = min(asked.points, points_that_fit(names))
    return _columns(run_series(found, names, asked.start, asked.end, points))


def _by_epoch(run: Run, names: Sequence[str], asked: SeriesQuery) -> Mapping[str, Sequence[Any]]:
    points, lineage = min(asked.points, points_that_fit(names)), asked.lineage
    first, last = asked.first, asked.last
    if lineage == "all":
        return run_series_by_lineage(run, names, points, first=first, last=last)
    if lineage and not (lineage.isascii() and lineage.isdecimal() and len(lineage) < 10):
        raise AppError(ErrorCode.BODY_INVALID, "lineage: a number, all, or nothing.")
    number = int(lineage) if lineage else None
    return run_series_by_epoch(run, names, points, lineage=number, first=first, last=last)


@router.get("runs/{slug}/throughput/", response=dict[str, list[float]])
@cacheable(5)
def throughput(
    request: HttpRequest,
    slug: str,
    start: From = None,
    end: To = None,
    points: Points = POINTS,
) -> HttpResponse:
    """Samples per second by hardware class, in columns: `t` in seconds since 1970, then a column
    per class that was there."""
    found = run_get_visible(request.user, slug)
    return _columns(run_throughput(found, start, end, points))


@router.get("runs/{slug}/marks/", response=MarksOut)
@cacheable(5)
def marks(
    request: HttpRequest,
    slug: str,
    start: From = None,
    end: To = None,
) -> dict[str, Any]:
    """Config changes, roll-backs, incidents, pauses and checkpoints, oldest first; of each kind
    the newest 200."""
    found = run_get_visible(request.user, slug)
    return {"items": [asdict(mark) for mark in run_marks(found, start, end)]}


@router.get("runs/{slug}/swarm/", response=SwarmOut)
@cacheable(5)
def swarm(request: HttpRequest, slug: str, at: Instant | None = None) -> dict[str, Any]:
    """The swarm as it was at an instant, now unless given: the newest moment that is kept from
    before it. Moments are kept 10 s apart for three hours, a minute for a week, then an hour."""
    found = swarm_at(run_get_visible(request.user, slug), at or timezone.now())
    if found is None:
        raise AppError(ErrorCode.NOT_FOUND, "Nothing is kept of this run's swarm yet.")
    return asdict(found)


def _columns(columns: Mapping[str, Sequence[Any]]) -> HttpResponse:
    """Return columns as short as JSON can be."""
    short = columns_round({name: list(values) for name, values in columns.items()})
    text = json.dumps(short, separators=(",", ":"))
    return HttpResponse(text, content_type="application/json")
