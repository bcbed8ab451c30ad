"""Files named by their content hash: streamed, resumable, and kept for ever by callers."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from training.protocol.errors import ErrorCode
from web.core.errors import AppError

_CHUNK = 1 << 18
_RANGE = re.compile(r"^bytes=(\d{1,18})-$")
_FOR_EVER = "public, max-age=31536000, immutable"


def file_answer(
    request: HttpRequest, path: Path, *, sha256: str, name: str, is_public: bool = True
) -> HttpResponseBase:
    """Return the file's bytes, from ``Range: bytes=N-`` on where a download is taken up again.

    Raises:
        AppError: NOT_FOUND when the file is not on disk.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise AppError(ErrorCode.NOT_FOUND, "This file is not kept here.") from error
    size = path.stat().st_size
    etag = f'"{sha256}"'
    start = _start(request, etag, size)
    file.seek(start)
    chunks = _chunks_async(file) if isinstance(request, ASGIRequest) else _chunks(file)
    response = StreamingHttpResponse(
        chunks, status=206 if start else 200, content_type="application/octet-stream"
    )
    if start:
        response["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
    response["Content-Length"] = str(size - start)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    response["Cache-Control"] = _FOR_EVER if is_public else "private, no-cache"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is None:
        return response
    file.close()
    unchanged["Cache-Control"] = response["Cache-Control"]
    return unchanged


def _start(request: HttpRequest, etag: str, size: int) -> int:
    match = _RANGE.match(request.headers.get("Range", ""))
    same = request.headers.get("If-Range", etag) == etag
    start = int(match[1]) if match and same else 0
    return start if start < size else 0


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


async def _chunks_async(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
    finally:
        file.close()
