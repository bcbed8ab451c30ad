"""Goodbyes before the server goes.

uvicorn tells applications of its end only after it has closed the sockets. So its signal handler
is wrapped: the hub says goodbye first, then the handler runs. A second signal goes straight
through.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from web.live.hub import Hub

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_watched: set[int] = set()
_closing: "set[asyncio.Task[None]]" = set()


def goodbye_prepare(hub: Hub) -> None:
    """Wrap the server's signal handlers, once; without a server nothing is wrapped."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if not callable(handler) or handler is signal.default_int_handler:
            continue  # Python's own: there is no server to wait for
        if number not in _watched:
            _watched.add(number)
            signal.signal(number, _wrapped(hub, handler, asyncio.get_running_loop()))


def _wrapped(
    hub: Hub, handler: Callable[..., Any], loop: asyncio.AbstractEventLoop
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if hub.is_closing or loop.is_closed():
            handler(number, frame)
            return
        hub.is_closing = True
        loop.call_soon_threadsafe(begin, number, frame)

    def begin(number: int, frame: FrameType | None) -> None:
        task = loop.create_task(hub.close())
        _closing.add(task)
        task.add_done_callback(lambda _: handler(number, frame))
        task.add_done_callback(_closing.discard)

    return handle
