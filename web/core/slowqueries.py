"""Which statements take long: their shape and count, never their values.

THREAD: kept in this process, for as long as it lives; at most ``MAX_SHAPES`` shapes, of which the
one that cost least makes room for a new one.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.backends.signals import connection_created

MAX_SHAPES = 100
_MAX_LENGTH = 600
_LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")
_LIST = re.compile(r"\(\s*(?:%s|\?)(?:\s*,\s*(?:%s|\?))+\s*\)")
_ROWS = re.compile(r"\(…\)(?:\s*,\s*\(…\))+")


@dataclass(frozen=True)
class SlowShape:
    """One statement without its values, and what it cost."""

    sql: str
    count: int
    total_seconds: float
    worst_seconds: float
    last_at: float
    """Seconds since the epoch."""


def shape_of(sql: str) -> str:
    """Return a statement without values, lists of one length or another being the same (pure)."""
    text = _LITERAL.sub("?", " ".join(sql.split()))
    return _ROWS.sub("(…)", _LIST.sub("(…)", text))[:_MAX_LENGTH]


class SlowLog:
    """The slow statements of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: dict[str, SlowShape] = {}

    def note(self, sql: str, seconds: float) -> None:
        """Count one slow statement."""
        shape, now = shape_of(sql), time.time()
        with self._lock:
            known = self._shapes.get(shape)
            if known is None and len(self._shapes) >= MAX_SHAPES:
                cheapest = min(self._shapes.values(), key=lambda row: row.total_seconds)
                del self._shapes[cheapest.sql]
            self._shapes[shape] = SlowShape(
                shape,
                (known.count if known else 0) + 1,
                (known.total_seconds if known else 0.0) + seconds,
                max(seconds, known.worst_seconds if known else 0.0),
                now,
            )

    def worst(self, limit: int = 20) -> list[SlowShape]:
        """Return the shapes that cost most time in all."""
        with self._lock:
            rows = list(self._shapes.values())
        return sorted(rows, key=lambda row: -row.total_seconds)[:limit]

    def clear(self) -> None:
        """Forget everything (tests)."""
        with self._lock:
            self._shapes.clear()


SLOW_LOG = SlowLog()


def _wrapper(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    began = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        seconds = time.perf_counter() - began
        if seconds * 1000 >= settings.SLOW_QUERY_MS:
            SLOW_LOG.note(sql, seconds)


def _watch(connection: Any, **_: Any) -> None:
    if _wrapper not in connection.execute_wrappers:
        connection.execute_wrappers.append(_wrapper)


def slow_queries_watch() -> None:
    """Time the statements of every connection that is opened from now on."""
    connection_created.connect(_watch, dispatch_uid="slow queries")
