"""How the services that the site leans on do: latency and size of each, or that it is away."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.db import DatabaseError, connection
from redis.exceptions import RedisError

from web.core.redis import redis_client

QUEUES = ("default", "mail", "launch")
"""As ``web.project.celery`` names them; a test compares the two."""


@dataclass(frozen=True)
class Service:
    """What one service answered. ``milliseconds`` None: it is away."""

    name: str
    version: str = ""
    milliseconds: float | None = None
    size_bytes: int | None = None
    detail: str = ""


def database_look() -> Service:
    """Ask the database for its version and size."""
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(
        connection.vendor, connection.vendor
    )
    try:
        with connection.cursor() as cursor:
            began = time.perf_counter()
            cursor.execute("SELECT 1")
            milliseconds = (time.perf_counter() - began) * 1000
            if connection.vendor == "postgresql":
                cursor.execute("SELECT pg_database_size(current_database()), version()")
                size, version = cursor.fetchone()
                return Service(name, version.split(" ")[1], milliseconds, size)
            cursor.execute("SELECT sqlite_version()")
            version = cursor.fetchone()[0]
    except DatabaseError as error:
        return Service(name, detail=type(error).__name__)
    path = Path(str(settings.DATABASES["default"]["NAME"]))
    return Service(name, version, milliseconds, path.stat().st_size if path.is_file() else None)


def redis_look() -> Service:
    """Ask Redis for its version and memory."""
    if settings.LIVE_BACKEND != "redis":
        return Service("Redis", detail="not used by this installation")
    try:
        began = time.perf_counter()
        redis_client().ping()
        milliseconds = (time.perf_counter() - began) * 1000
        info = cast("dict[str, Any]", redis_client().info())
    except (RedisError, OSError) as error:
        return Service("Redis", detail=type(error).__name__)
    version = info.get("valkey_version") or info.get("redis_version", "")
    clients = f"{info.get('connected_clients', 0)} connections"
    return Service("Redis", str(version), milliseconds, info.get("used_memory"), clients)


def queue_lengths(more: Sequence[str] = ()) -> dict[str, int] | None:
    """Return how many jobs wait in each queue of Celery; None when Redis is away.

    Args:
        more: queues beside :data:`QUEUES`, such as those of nodes.
    """
    queues = (*QUEUES, *more)
    if settings.LIVE_BACKEND != "redis":
        return dict.fromkeys(queues, 0)
    try:
        with redis_client().pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.llen(queue)
            return dict(zip(queues, pipe.execute(), strict=True))
    except (RedisError, OSError):
        return None
