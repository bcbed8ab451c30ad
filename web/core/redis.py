"""Connections to Redis, and the name of every key and channel of ours."""

from functools import lru_cache
from urllib.parse import urlsplit

import redis
import redis.asyncio
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
"""A request waits no longer than this for a Redis that hangs; raise it for a remote one."""


def live_state_key(slug: str) -> str:
    """Return the key of a run's newest live state (a JSON text)."""
    return f"live:{slug}:state"


def live_ring_key(slug: str) -> str:
    """Return the key of a run's last live messages (a stream)."""
    return f"live:{slug}:ring"


def _channel_prefix() -> str:
    # Channels, unlike keys, are shared by all databases of one Redis server.
    return f"db{urlsplit(settings.REDIS_URL).path.strip('/') or '0'}:"


def live_channel(slug: str) -> str:
    """Return the channel on which a run's live messages are published."""
    return f"{_channel_prefix()}live:{slug}"


def live_channel_pattern() -> str:
    """Return the pattern that matches the live channels of all runs."""
    return live_channel("*")


def live_channel_slug(channel: str) -> str:
    """Return the run that a live channel belongs to."""
    return channel.removeprefix(live_channel(""))


def access_channel() -> str:
    """Return the channel that says: somebody's right to watch may have ended, look again."""
    return f"{_channel_prefix()}access"


@lru_cache(maxsize=4)
def _client(url: str) -> "redis.Redis":
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=_ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 1),  # one more try: a restarted server leaves dead connections
    )


def redis_client() -> "redis.Redis":
    """Return this process's client (threads share it; text in, text out)."""
    return _client(settings.REDIS_URL)


def redis_subscriber() -> "redis.asyncio.Redis":
    """Return a new async client for one subscription; the caller closes it.

    It waits without limit for the next message, and never tries again by itself.
    """
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=None,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
