"""Where a process hears of new messages: one subscription for all runs.

LOOP: a source is one task. It reports through a :class:`Listener` and never ends by itself.
"""

import asyncio
import logging
import random
from typing import Protocol

from django.conf import settings
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from web.core.events import MEMORY_STORE
from web.core.redis import (
    access_channel,
    live_channel_pattern,
    live_channel_slug,
    redis_subscriber,
)

log = logging.getLogger(__name__)

QUIET_SECONDS = 15.0
"""After so long a silence the connection is tried; raise it when thousands of processes listen."""
_BACKOFF_SECONDS = (0.2, 5.0)


class Listener(Protocol):
    """What a source tells."""

    def connected(self) -> None:
        """From now on nothing is missed; what came before may be."""

    def disconnected(self) -> None:
        """The source could not be reached, or no longer."""

    def message(self, slug: str, text: str) -> None: ...
    def access_changed(self) -> None: ...


async def source_run(listener: Listener) -> None:
    """Report to ``listener`` until cancelled."""
    if settings.LIVE_BACKEND == "memory":
        await _memory_run(listener)
    else:
        await _redis_run(listener)


async def _memory_run(listener: Listener) -> None:
    loop = asyncio.get_running_loop()

    def watcher(slug: str | None, text: str) -> None:
        if slug is None:
            loop.call_soon_threadsafe(listener.access_changed)
        else:
            loop.call_soon_threadsafe(listener.message, slug, text)

    MEMORY_STORE.watchers.add(watcher)
    listener.connected()
    try:
        await loop.create_future()
    finally:
        MEMORY_STORE.watchers.discard(watcher)


async def _redis_run(listener: Listener) -> None:
    shortest, longest = _BACKOFF_SECONDS
    wait = shortest
    while True:
        client = redis_subscriber()
        pubsub = client.pubsub()
        try:
            await pubsub.subscribe(access_channel())
            await pubsub.psubscribe(live_channel_pattern())
            wait = await _confirmed(pubsub, shortest)
            listener.connected()
            await _listen(pubsub, listener)
        except (RedisError, OSError) as error:
            listener.disconnected()
            log.info("live subscription lost (%s): again in %.1f s", error, wait)
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]
            await client.aclose()
        await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311
        wait = min(longest, wait * 2)


async def _confirmed(pubsub: PubSub, shortest: float) -> float:
    for _ in ("subscribe", "psubscribe"):
        if await pubsub.get_message(timeout=QUIET_SECONDS) is None:
            raise RedisConnectionError("no answer to the subscription")
    return shortest


async def _listen(pubsub: PubSub, listener: Listener) -> None:
    is_asked = False
    while True:
        message = await pubsub.get_message(timeout=QUIET_SECONDS)
        if message is None:
            if is_asked:
                raise RedisConnectionError("no answer for long")
            await pubsub.ping()
            is_asked = True
            continue
        is_asked = False
        if message["type"] == "pmessage":
            listener.message(live_channel_slug(message["channel"]), message["data"])
        elif message["type"] == "message":
            listener.access_changed()
