"""How long and how large a request may be, before anything of ours looks at it.

The server itself (uvicorn) waits for headers and bodies without end and takes headers of any
length, and Django writes bodies of any length to the disk before a view may refuse them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from training.protocol.errors import ErrorCode
from web.core.errors import PROBLEM_CONTENT_TYPE, AppError, problem_response

HEADER_SECONDS = 15.0
"""A client that has not sent its headers by then is cut off; raise it for very thin lines."""
HEADER_BYTES = 65_536
BODY_SECONDS = 30.0
"""For the whole body, beside what its size needs at MIN_BYTES_PER_SECOND."""
MIN_BYTES_PER_SECOND = 20_000
MAX_BYTES = 10_000_000
"""A snapshot of thousands of peers, each with its own signed message, is large."""
MAX_BYTES_OF_STRANGERS = 1_000_000
"""Without a token there are forms only."""

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a bound on the time and the length of headers."""

    _deadline: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadline_begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline_end()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._deadline_begin()

    def on_headers_complete(self) -> None:
        self._deadline_end()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if self._deadline is not None:
            self._unread += len(data)
            if self._unread > HEADER_BYTES and not self._ends_in(data):
                self.send_400_response("The headers are too long.")
                return
        super().data_received(data)

    def _ends_in(self, data: bytes) -> bool:
        # One read may hold the end of the headers and much of the body.
        return self._unread - len(data) <= HEADER_BYTES and b"\r\n\r\n" in data[:HEADER_BYTES]

    def _deadline_begin(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _deadline_end(self) -> None:
        self._unread = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class BodyBound:
    """An ASGI application whose requests have bodies of a bounded size, within a bounded time."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        limit = MAX_BYTES if b"authorization" in headers else MAX_BYTES_OF_STRANGERS
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 12 or int(declared) > limit:
            await _refuse(send, limit)
            return
        await self._application(scope, _Bounded(receive, send, limit).receive, send)


class _Bounded:
    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._taken = 0
        self._began_at = time.monotonic()
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next part of the body; a disconnect after what is refused."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout(self._patience()):
                message = await self._receive()
        except TimeoutError:
            await _refuse(self._send, self._limit, code=ErrorCode.REQUEST_TOO_SLOW)
            return {"type": "http.disconnect"}
        self._taken += len(message.get("body", b""))
        if self._taken > self._limit:
            await _refuse(self._send, self._limit)
            return {"type": "http.disconnect"}
        self._is_whole = message["type"] != "http.request" or not message.get("more_body")
        return message

    def _patience(self) -> float:
        allowed = BODY_SECONDS + self._taken / MIN_BYTES_PER_SECOND
        return max(0.0, self._began_at + allowed - time.monotonic())


async def _refuse(send: Send, limit: int, code: ErrorCode = ErrorCode.BODY_TOO_LARGE) -> None:
    detail = f"At most {limit:,} bytes are taken here." if code is ErrorCode.BODY_TOO_LARGE else ""
    response = problem_response(AppError(code, detail))
    headers = {
        "Content-Type": PROBLEM_CONTENT_TYPE,
        "Content-Length": str(len(response.content)),
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": response.content})
