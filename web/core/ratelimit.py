"""Limits such as ``10/m/ip``: at most 10 times a minute from one address."""

import logging
import time

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from redis.exceptions import RedisError

from training.protocol.errors import ErrorCode
from web.core.errors import AppError

logger = logging.getLogger(__name__)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def client_address(request: HttpRequest) -> str:
    """Return the address a request came from; behind a proxy, the one that the proxy saw."""
    if settings.BEHIND_PROXY:
        hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
        if hops[-1]:
            return hops[-1]
    return str(request.META.get("REMOTE_ADDR", ""))


def rate_limit(who: HttpRequest | str, scope: str, limit: str) -> None:
    """Count one use of ``scope``.

    ``limit`` is ``count/unit/kind``: unit s, m, h or d; kind ``ip`` (of a request), ``user``
    (of a request, else its address) or ``key`` (``who`` is the text to count by).

    Raises:
        AppError: TOO_MANY_REQUESTS, with the seconds until the window ends.
    """
    if not getattr(settings, "RATE_LIMITS_ENABLED", True):
        return
    count, unit, kind = limit.split("/")
    window = _SECONDS[unit]
    now = time.time()
    key = f"limit:{scope}:{kind}:{_identity(who, kind)}:{int(now // window)}"
    if _hits(key, window) > int(count):
        raise AppError(
            ErrorCode.TOO_MANY_REQUESTS,
            f"At most {count} of these are allowed in {window} s.",
            retry_after=window - now % window,
        )


def _identity(who: HttpRequest | str, kind: str) -> str:
    if isinstance(who, str):
        return who
    if kind == "user" and who.user.is_authenticated:
        return f"user-{who.user.pk}"
    return client_address(who)


def _hits(key: str, window: int) -> int:
    try:
        if cache.add(key, 1, timeout=window * 2):
            return 1
        return int(cache.incr(key))
    except ValueError:  # the entry expired between the two calls
        return 1
    except (RedisError, OSError) as error:
        # Serving without limits is better than not serving while Redis restarts.
        logger.warning("rate limit %s is not counted: %s", key, error)
        return 0
