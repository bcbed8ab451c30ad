"""Join challenges: they carry their own truth, and each is good once."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from django.core import signing
from django.core.cache import cache
from redis.exceptions import RedisError

from training.protocol.api import Challenge
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run

LIFETIME = timedelta(minutes=5)
_SALT = "beeyard.join"


def challenge_issue(run: Run, user: User, now: datetime) -> Challenge:
    """Return a text for one device of this account to sign, for this run only."""
    expires_at = datetime.fromtimestamp(int((now + LIFETIME).timestamp()), UTC)
    body = [run.slug, user.pk, int(expires_at.timestamp()), secrets.token_urlsafe(12)]
    return Challenge(challenge=signing.dumps(body, salt=_SALT), expires_at=expires_at)


def challenge_check(run: Run, user: User, text: str, now: datetime) -> None:
    """Use up a challenge.

    Raises:
        AppError: CHALLENGE_INVALID (not ours, of another run or account, or used before),
            CHALLENGE_EXPIRED, or SERVICE_UNAVAILABLE when uses cannot be written down.
    """
    try:
        slug, user_id, expires, _ = signing.loads(text, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise AppError(ErrorCode.CHALLENGE_INVALID, "This site gave no such challenge.") from error
    if (slug, user_id) != (run.slug, user.pk):
        raise AppError(
            ErrorCode.CHALLENGE_INVALID, "This challenge was given to another account or run."
        )
    if now.timestamp() >= expires:
        raise AppError(ErrorCode.CHALLENGE_EXPIRED)
    if not _is_first_use(text):
        raise AppError(ErrorCode.CHALLENGE_INVALID, "This challenge was used before.")


def _is_first_use(text: str) -> bool:
    key = f"challenge:{hashlib.sha256(text.encode()).hexdigest()}"
    try:
        return bool(cache.add(key, 1, timeout=int(LIFETIME.total_seconds()) + 60))
    except (RedisError, OSError) as error:
        raise AppError(
            ErrorCode.SERVICE_UNAVAILABLE, "Joining is not possible while Redis is away."
        ) from error
