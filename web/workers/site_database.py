"""Where the site's database is, told through Redis to nodes that know nothing else of the site."""

import logging
from datetime import timedelta

from django.conf import settings
from redis.exceptions import RedisError

from web.core.redis import redis_client

logger = logging.getLogger(__name__)

_KEY = "nodes:database_url"
KEPT = timedelta(hours=1)
"""After the last word of the site's own node: one can be added while the site restarts."""


def database_tell() -> None:
    """Say where it is; the site's own node does so at each look."""
    if settings.LIVE_BACKEND != "redis":
        return
    try:
        redis_client().set(_KEY, settings.DATABASE_URL, ex=KEPT)
    except RedisError as error:
        logger.warning("nodes cannot be told where the database is: %s", error)


def database_ask() -> str | None:
    """Return what the site said, None when it said nothing lately.

    Raises:
        RedisError: Redis does not answer.
    """
    found = redis_client().get(_KEY)
    return found if isinstance(found, str) else None
