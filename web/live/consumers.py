"""The websocket of a run's page: admitted, then fed until it or we end."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from django.db import Error as DatabaseTrouble

from web.core.figures import SOCKET_ENDINGS
from web.live.access import NoAccessError, NoRunError, watch_admit
from web.live.hub import hub_get
from web.live.limits import FRAME_MAX_CHARACTERS, FrameBudget, scope_client
from web.live.shutdown import goodbye_prepare
from web.live.viewer import (
    CLOSE_FORBIDDEN,
    CLOSE_GARBAGE,
    CLOSE_TOO_MANY,
    CLOSE_UNKNOWN,
    WRITE,
    Ending,
    Line,
    Viewer,
    ending_restart,
)

log = logging.getLogger(__name__)

Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_FAREWELL_SECONDS = 2.0


async def run_consumer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Serve ``/ws/runs/{slug}/?since=SEQ`` (an ASGI application)."""
    await receive()  # websocket.connect
    await send({"type": "websocket.accept"})  # close codes of ours need an open socket
    hub, client = hub_get(), scope_client(scope)
    goodbye_prepare(hub)
    if not hub.sockets.enter(client):
        await _close(send, Ending(CLOSE_TOO_MANY))
        return
    try:
        ending = await _serve(scope, receive, send)
    finally:
        hub.sockets.leave(client)
    if ending is not None:
        await _close(send, ending)
    else:
        SOCKET_ENDINGS.labels(reason="left").inc()


async def nowhere_consumer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Close a socket at an address where no run can be (an ASGI application)."""
    await receive()  # websocket.connect
    await send({"type": "websocket.accept"})
    await _close(send, Ending(CLOSE_UNKNOWN))


async def _serve(scope: dict[str, Any], receive: Receive, send: Send) -> Ending | None:
    """Return how the server ends the connection, None when the client has gone."""
    slug, user, hub = scope["url_route"]["kwargs"]["slug"], scope["user"], hub_get()
    if hub.is_closing:
        return ending_restart()
    try:
        known = await watch_admit(user, slug)
    except NoAccessError:
        return Ending(CLOSE_FORBIDDEN)
    except NoRunError:
        return Ending(CLOSE_UNKNOWN)

    async def send_text(text: str) -> None:
        await send({"type": "websocket.send", "text": text})

    line = Line(send_text, scope.get("extensions", {}).get(WRITE, {}).get("write"))
    watching = hub.watching(slug, user_id=user.pk, line=line, since=_since(scope), known=known)
    async with watching as viewer:
        return await _feed(viewer, receive)


async def _feed(viewer: Viewer, receive: Receive) -> Ending | None:
    """Run the socket's two directions until one of them, or the hub, ends it."""
    reader = asyncio.create_task(_read(receive))
    pump = asyncio.create_task(viewer.pump())
    try:
        either: set[asyncio.Future[Any]] = {reader, pump, viewer.ending}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if reader.done():
            return reader.result()
        if viewer.ending.done():
            return replace(viewer.ending.result(), seq=viewer.cursor)
        return _pump_ending(pump, viewer)
    finally:
        for task in (reader, pump):
            task.cancel()
        await asyncio.gather(reader, pump, return_exceptions=True)


def _pump_ending(pump: "asyncio.Task[None]", viewer: Viewer) -> Ending | None:
    error = pump.exception()
    slug = viewer.room.slug
    if isinstance(error, DatabaseTrouble):
        log.error("run %s: no snapshot: %s", slug, error)
        return ending_restart()
    if error is not None and not isinstance(error, OSError):
        raise error
    return None  # it has gone


async def _read(receive: Receive) -> Ending | None:
    """Take the client's frames until it leaves or says what it must not."""
    budget = FrameBudget(time.monotonic())
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            return None
        if not budget.take(time.monotonic()):
            return Ending(CLOSE_TOO_MANY)
        if not _is_ping(event.get("text")):
            return Ending(CLOSE_GARBAGE)


def _is_ping(text: str | None) -> bool:
    if text is None or len(text) > FRAME_MAX_CHARACTERS:
        return False
    try:
        return bool(json.loads(text) == {"type": "ping"})
    except (ValueError, RecursionError):
        return False


def _since(scope: dict[str, Any]) -> int | None:
    value = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("since", [""])[-1]
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


async def _close(send: Send, ending: Ending) -> None:
    """Say why, when the client still takes it; who does not is cut off by the server below."""
    SOCKET_ENDINGS.labels(reason=ending.name).inc()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            if ending.reason:
                await send({"type": "websocket.send", "text": ending.frame()})
            await send({"type": "websocket.close", "code": ending.code, "reason": ending.reason})
