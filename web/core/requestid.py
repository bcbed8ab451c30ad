"""An id for each request, in its answer and in every log line that it causes."""

import logging
import re
import secrets
from contextvars import ContextVar

_GIVEN = re.compile(r"^[A-Za-z0-9._-]{8,64}$")
_current: ContextVar[str] = ContextVar("request_id", default="-")


def request_id() -> str:
    """Return the id of the request being served, '-' outside of one."""
    return _current.get()


def request_id_begin(given: str) -> str:
    """Take the id that a proxy gave, or make one, and return it."""
    value = given if _GIVEN.match(given) else secrets.token_hex(8)
    _current.set(value)
    return value


class RequestIdFilter(logging.Filter):
    """Adds ``request_id`` to log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _current.get()
        return True


class RefusalFilter(logging.Filter):
    """Writes what strangers do wrong, such as asking for another host, without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True
