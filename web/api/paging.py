"""Lists by cursor: ``?cursor=&limit=`` answers ``{"items": […], "next": cursor|null}``.

A cursor names the last row that was seen, so that rows added meanwhile shift nothing.
"""

import base64
import binascii
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from ninja import Schema
from pydantic import Field as Bounds

from training.protocol.errors import ErrorCode
from web.core.errors import AppError

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
MAX_LIMIT = 500
_NOT_OURS = "This cursor is not one of ours."
_UNREADABLE = (
    ValueError, TypeError, binascii.Error, ValidationError, OverflowError, RecursionError,
)  # fmt: skip


class PageQuery(Schema):
    """Query of a list: ``page: PageQuery = Query(...)``."""

    cursor: str | None = Bounds(default=None, max_length=400)
    limit: int = Bounds(default=50, ge=1, le=MAX_LIMIT)


class Page(Schema, Generic[Item]):
    """Answer of a list: ``response=Page[LedgerRow]``."""

    items: list[Item]
    next: str | None = None


def page_of(
    rows: QuerySet[Row], query: PageQuery, *, order: str, item: Callable[[Row], Item]
) -> dict[str, Any]:
    """Return one page, ordered by a field (``-finished_at``) and, where equal, by id.

    The field must not be null.

    Raises:
        AppError: BODY_INVALID for a cursor that is not one of ours.
    """
    down, field = order.startswith("-"), order.lstrip("-")
    sign = "-" if down else ""
    if query.cursor:
        rows = rows.filter(_after(rows, field, down, query.cursor))
    found = list(rows.order_by(f"{sign}{field}", f"{sign}pk")[: query.limit + 1])
    page = found[: query.limit]
    more = len(found) > query.limit
    return {
        "items": [item(row) for row in page],
        "next": _cursor(page[-1], field) if more else None,
    }


def _after(rows: QuerySet[Row], field: str, down: bool, cursor: str) -> Q:
    than = "lt" if down else "gt"
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        raw_value, raw_key = json.loads(text)
        value = _column(rows, field).to_python(raw_value)
        key = int(raw_key)
        is_ours = value is not None and (not isinstance(value, datetime) or _is_storable(value))
    except _UNREADABLE as error:
        raise AppError(ErrorCode.BODY_INVALID, _NOT_OURS) from error
    if not is_ours:
        raise AppError(ErrorCode.BODY_INVALID, _NOT_OURS)
    return Q(**{f"{field}__{than}": value}) | Q(**{field: value, f"pk__{than}": key})


def _is_storable(at: datetime) -> bool:
    """Whether databases can compare with an instant: at both ends of time, zones overflow."""
    return at.tzinfo is not None and 1 < at.year < 9999


def _column(rows: QuerySet[Row], field: str) -> "Field[Any, Any]":
    column = rows.model._meta.pk if field == "pk" else rows.model._meta.get_field(field)
    assert isinstance(column, Field)  # noqa: S101 the order is ours, not the caller's
    return column


def _cursor(row: Model, field: str) -> str:
    value = getattr(row, field)
    raw = value.isoformat() if hasattr(value, "isoformat") else value
    text = json.dumps([raw, row.pk], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
