"""Reads of the ledger and its totals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from training.protocol.api import BoardRow
from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState
from web.accounts.models import Device, User
from web.accounts.names import HIDDEN_NAME
from web.contributions.accounting import ranks_of
from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.selectors import Viewer

PERIODS: Mapping[str, timedelta | None] = {
    "all": None,
    "30d": timedelta(days=30),
    "7d": timedelta(days=7),
    "24h": timedelta(hours=24),
}


@dataclass(frozen=True)
class Board:
    """A part of a leaderboard."""

    rows: list[BoardRow]
    me: BoardRow | None
    num_volunteers: int
    managed_samples: int
    """Of the site's own machines, which are not ranked."""
    total_samples: int
    """Of everybody, the site's own machines included; shares are parts of it."""


@dataclass(frozen=True)
class _Whole:
    samples: int
    managed: int
    num_volunteers: int


@dataclass(frozen=True)
class UserTotals:
    """What an account has given to all runs that are not private."""

    samples: int
    device_hours: float
    runs: list[dict[str, Any]]
    """``slug``, ``title``, ``samples``, ``epochs``, ``device_hours``, ``last_seen``; most samples
    first."""


def leaderboard(
    run: Run,
    period: str = "all",
    viewer: Viewer = None,
    limit: int = 100,
    offset: int = 0,
    *,
    now: datetime | None = None,
) -> Board:
    """Return ranks by confirmed samples of epochs that ended within the period.

    Raises:
        AppError: BODY_INVALID (no such period).
    """
    sums = _sums(run, period, now or timezone.now())
    ranked = sums.filter(user__is_service=False, user__banned_at=None, total__gt=0)
    whole = _whole(sums)
    order = ranked.order_by("-total", "user_id")
    people = ("user__username", "user__is_profile_public")
    window = list(order.values(*people, "user_id", "total", "hours", "last")[offset:][:limit])
    numbers = [row["total"] for row in window]
    above = ranked.filter(total__gt=numbers[0]).count() if numbers and offset else 0
    ranks = [
        above + 1 if number == numbers[0] else offset + rank
        for number, rank in zip(numbers, ranks_of(numbers), strict=True)
    ]
    rows = [
        _board_row(row, rank, _name_in(row, viewer), whole.samples)
        for row, rank in zip(window, ranks, strict=True)
    ]
    return Board(
        rows=rows,
        me=_own_row(ranked, list(zip(window, rows, strict=True)), viewer, whole.samples),
        num_volunteers=whole.num_volunteers,
        managed_samples=whole.managed,
        total_samples=whole.samples,
    )


def ledger_rows(run: Run, user: User | None = None) -> QuerySet[LedgerEntry]:
    """Return the entries of a run, newest first; of one account when given."""
    rows = LedgerEntry.objects.filter(run=run)
    return _loaded(rows.filter(user=user) if user else rows)


def user_ledger_rows(user: User) -> QuerySet[LedgerEntry]:
    """Return an account's entries in public runs, newest first."""
    return _loaded(LedgerEntry.objects.filter(user=user, run__is_public=True))


def receipts(device: Device, run: Run) -> QuerySet[LedgerEntry]:
    """Return what was and was not counted for a device, newest first.

    One row per epoch, the newest state of it; ``corrected`` is what later corrections added
    (mostly below zero).
    """
    first = LedgerEntry.objects.filter(run=run, device=device, corrects=None, settlement=None)
    rows = _loaded(first).select_related("settles")
    return rows.annotate(corrected=Coalesce(Sum("corrections__samples"), 0))


def device_sums(device: Device, run: Run) -> list[dict[str, Any]]:
    """Return ``state``, ``samples`` (corrections included) and ``epochs`` of a device's work."""
    entries = LedgerEntry.objects.filter(run=run, device=device, settlement=None).order_by("state")
    sums = entries.values("state").annotate(
        samples=Sum("samples"), epochs=Count("pk", filter=Q(corrects=None))
    )
    return [dict(row) for row in sums]


def user_totals(user: User) -> UserTotals:
    """Return an account's totals in public runs."""
    totals = ContributionTotal.objects.filter(user=user, run__is_public=True, samples__gt=0)
    runs: list[dict[str, Any]] = [
        {
            "slug": total.run.slug,
            "title": total.run.title,
            "samples": total.samples,
            "epochs": total.epochs,
            "device_hours": total.seconds / 3600,
            "last_seen": total.last_at,
        }
        for total in totals.select_related("run").order_by("-samples", "run_id")
    ]
    return UserTotals(
        samples=sum(r["samples"] for r in runs),
        device_hours=sum(r["device_hours"] for r in runs),
        runs=runs,
    )


def _loaded(rows: QuerySet[LedgerEntry]) -> QuerySet[LedgerEntry]:
    return rows.select_related("user", "device", "run").order_by("-pk")


def _sums(run: Run, period: str, now: datetime) -> Any:
    """Return a queryset of dicts: ``user_id``, ``total``, ``hours``, ``last``."""
    if period not in PERIODS:
        raise AppError(ErrorCode.BODY_INVALID, f"period: one of {', '.join(PERIODS)}.")
    length = PERIODS[period]
    if length is None:
        totals = ContributionTotal.objects.filter(run=run)
        # One row per account: nothing to add up, and the first ranks come from an index.
        rows = totals.annotate(total=F("samples"), hours=F("seconds") / 3600, last=F("last_at"))
        return rows.values("user_id", "total", "hours", "last")
    entries = LedgerEntry.objects.filter(
        run=run, state=CreditState.CONFIRMED, finished_at__gte=now - length
    )
    return (
        entries.order_by()
        .values("user_id")
        .annotate(
            total=Sum("samples"),
            hours=Sum("seconds") / 3600,
            last=Max("finished_at", filter=Q(corrects=None)),
        )
    )


def _whole(sums: Any) -> _Whole:
    """Return the sums of everybody, in one query."""
    rows = sums.order_by().values("user_id", "user__is_service", "user__banned_at", "total")
    is_ranked = Q(user__is_service=False, user__banned_at=None, total__gt=0)
    found = rows.aggregate(
        ranked=Sum("total", filter=is_ranked),
        managed=Sum("total", filter=Q(user__is_service=True)),
        people=Count("user_id", filter=is_ranked),
    )
    managed = found["managed"] or 0
    return _Whole((found["ranked"] or 0) + managed, managed, found["people"])


def _name_in(row: Mapping[str, Any], viewer: Viewer) -> str:
    is_own = isinstance(viewer, User) and viewer.pk == row["user_id"]
    is_open = row["user__is_profile_public"] or is_own
    return str(row["user__username"]) if is_open else HIDDEN_NAME


def _own_row(
    ranked: QuerySet[Any, dict[str, Any]],
    window: Sequence[tuple[Mapping[str, Any], BoardRow]],
    viewer: Viewer,
    whole: int,
) -> BoardRow | None:
    """Return the viewer's row: from the window, else of the database."""
    if not isinstance(viewer, User):
        return None
    for row, shown in window:
        if row["user_id"] == viewer.pk:
            return shown
    own = ranked.filter(user_id=viewer.pk).order_by("user_id").first()
    if own is None:
        return None
    rank = ranked.filter(total__gt=own["total"]).count() + 1
    return _board_row(own, rank, viewer.username, whole)


def _board_row(row: Mapping[str, Any], rank: int, name: str, whole: int) -> BoardRow:
    return BoardRow(
        rank=rank,
        user=name,
        samples=row["total"],
        share=row["total"] / whole if whole else 0.0,
        device_hours=max(row["hours"] or 0.0, 0.0),
        last_seen=row["last"],
    )
