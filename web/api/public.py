"""What everybody may read of runs that they may see."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Query, Router

from training.protocol.api import ConfigOut, LedgerRow, LiveRun, RunSummary
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.selectors import profile_visible
from web.api.auth import optional_auth
from web.api.badges import run_badge, user_badge
from web.api.caching import cacheable
from web.api.document import answers
from web.api.paging import Page, PageQuery, page_of
from web.api.rows import (
    LEDGER_COLUMNS,
    config_out,
    ledger_row,
    profile_out,
    run_out,
    user_ledger_row,
)
from web.api.run_schemas import BoardOut, EventOut, RunOut, UserLedgerRow
from web.api.schemas import ProfileOut
from web.contributions.selectors import leaderboard, ledger_rows, user_ledger_rows, user_totals
from web.core.errors import AppError
from web.core.exports import csv_text, table_answer
from web.monitoring.selectors import live_state, summaries_of
from web.runs.models import Run
from web.runs.selectors import run_get_visible, runs_visible

router = Router(auth=optional_auth)
MAX_BOARD = 500


def _run(request: HttpRequest, slug: str) -> Run:
    return run_get_visible(request.user, slug)


@router.get("runs/", response=Page[RunSummary])
@cacheable(2)
def runs(request: HttpRequest, page: Query[PageQuery]) -> dict[str, Any]:
    """Public runs, and one's own."""
    answer = page_of(runs_visible(request.user), page, order="id", item=lambda run: run)
    return answer | {"items": summaries_of(answer["items"], timezone.now())}


@router.get("runs/{slug}/", response=RunOut)
@cacheable(2)
def run(request: HttpRequest, slug: str) -> RunOut:
    """One run."""
    return run_out(_run(request, slug), timezone.now())


@router.get("runs/{slug}/state/", response=LiveRun)
@cacheable(1)
def state(request: HttpRequest, slug: str) -> dict[str, Any]:
    """The live state, with its number; what the websocket calls a snapshot."""
    return live_state(_run(request, slug), request.user)


@router.get("runs/{slug}/config/", response=ConfigOut)
@cacheable(10)
def config(
    request: HttpRequest, slug: str, version: Annotated[int | None, Query(ge=1)] = None
) -> ConfigOut:
    """The newest config (or one version): as signed, decoded, and what changed in it."""
    return config_out(_run(request, slug), version)


@router.get("runs/{slug}/leaderboard/", response=BoardOut, openapi_extra=answers("text/csv"))
@cacheable(5)
def board(
    request: HttpRequest,
    slug: str,
    period: str = "all",
    limit: Annotated[int, Query(ge=1, le=MAX_BOARD)] = 100,
    cursor: Annotated[int, Query(ge=0, le=10**9)] = 0,
    format: str = "json",
) -> Any:
    """Who gave how many samples in all, 30d, 7d or 24h; one's own row is in `me`."""
    found = _run(request, slug)
    page = leaderboard(found, period, request.user, limit, cursor)
    if format == "csv":
        columns = ("rank", "user", "samples", "share", "device_hours", "last_seen")
        text = csv_text(columns, [row.model_dump(mode="json") for row in page.rows])
        return HttpResponse(text, content_type="text/csv; charset=utf-8")
    if format != "json":
        raise AppError(ErrorCode.BODY_INVALID, "format: json or csv.")
    end = cursor + len(page.rows)
    return {
        "period": period,
        "items": page.rows,
        "next": str(end) if page.rows and end < page.num_volunteers else None,
        "me": page.me,
        "num_volunteers": page.num_volunteers,
        "managed_samples": page.managed_samples,
        "total_samples": page.total_samples,
    }


@router.get(
    "runs/{slug}/contributions/",
    response=Page[LedgerRow],
    openapi_extra=answers("text/csv", "application/x-ndjson"),
)
@cacheable(5)
def contributions(
    request: HttpRequest,
    slug: str,
    page: Query[PageQuery],
    user: str = "",
    format: str = "json",
) -> Any:
    """Ledger rows, newest first; of one user, if that profile is public."""
    found = _run(request, slug)
    rows = ledger_rows(found, profile_visible(request.user, user) if user else None)
    viewer = request.user if isinstance(request.user, User) else None
    if format == "json":
        return page_of(rows, page, order="-id", item=lambda row: ledger_row(row, viewer))
    return table_answer(
        request,
        rows,
        format=format,
        columns=LEDGER_COLUMNS,
        item=lambda row: ledger_row(row, viewer).model_dump(mode="json"),
        name=f"{slug}-contributions",
    )


@router.get("runs/{slug}/events/", response=Page[EventOut])
@cacheable(2)
def events(request: HttpRequest, slug: str, page: Query[PageQuery]) -> dict[str, Any]:
    """The events feed, newest first."""
    return page_of(_run(request, slug).events.all(), page, order="-seq", item=lambda row: row)


@router.get("runs/{slug}/badge.svg", openapi_extra=answers("image/svg+xml"))
@cacheable(60)
def badge(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A picture of the run's state for other pages."""
    return run_badge(live_state(_run(request, slug)))


@router.get("users/{username}/", response=ProfileOut)
@cacheable(10)
def user(request: HttpRequest, username: str) -> ProfileOut:
    """An account's totals in public runs, if its profile is public."""
    return profile_out(profile_visible(request.user, username))


@router.get("users/{username}/badge.svg", openapi_extra=answers("image/svg+xml"))
@cacheable(60)
def user_picture(request: HttpRequest, username: str) -> HttpResponseBase:
    """A picture of what an account has given, for other pages."""
    found = profile_visible(request.user, username)
    return user_badge(found.username, user_totals(found).samples)


@router.get("users/{username}/contributions/", response=Page[UserLedgerRow])
@cacheable(5)
def user_contributions(
    request: HttpRequest, username: str, page: Query[PageQuery]
) -> dict[str, Any]:
    """An account's ledger rows in public runs, if its profile is public."""
    rows = user_ledger_rows(profile_visible(request.user, username))
    return page_of(rows, page, order="-id", item=user_ledger_row)
