"""Tables for other programs: CSV and NDJSON, read and sent piece by piece."""

import csv
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from io import StringIO
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from training.protocol.errors import ErrorCode
from web.core.errors import AppError

_CHUNK = 2000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
Row = dict[str, Any]


def table_answer(
    request: HttpRequest,
    rows: "QuerySet[Any]",
    *,
    format: str,
    columns: Sequence[str],
    item: Callable[[Any], Row],
    name: str,
) -> StreamingHttpResponse:
    """Return all ``rows``, newest first; ``item`` makes a row of plain values of each.

    Raises:
        AppError: BODY_INVALID (no such format).
    """
    if format not in _TYPES:
        raise AppError(ErrorCode.BODY_INVALID, f"format: json, {' or '.join(_TYPES)}.")
    source = _pieces(rows, format=format, columns=columns, item=item)
    is_async = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _threaded(source) if is_async else source, content_type=_TYPES[format]
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.{format}"'
    return response


def csv_text(columns: Sequence[str], rows: Sequence[Row], *, header: bool = True) -> str:
    """Return rows as CSV. Text that a spreadsheet would run as a formula is quoted."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([[_cell(row[column]) for column in columns] for row in rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    return "" if value is None else value


def _pieces(
    rows: "QuerySet[Any]", *, format: str, columns: Sequence[str], item: Callable[[Any], Row]
) -> Iterator[str]:
    last: int | None = None
    while True:
        piece = rows if last is None else rows.filter(pk__lt=last)
        found = list(piece.order_by("-pk")[:_CHUNK])
        items = [item(row) for row in found]
        if format == "csv":
            yield csv_text(columns, items, header=last is None)
        else:
            yield "".join(f"{json.dumps(row, default=str)}\n" for row in items)
        if len(found) < _CHUNK:
            return
        last = found[-1].pk


async def _threaded(source: Iterator[str]) -> AsyncIterator[str]:
    def step() -> str | None:
        return next(source, None)

    while (piece := await sync_to_async(step)()) is not None:
        yield piece
