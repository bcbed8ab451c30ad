"""Who may watch a run, asked in the database. Addresses are in no message, for nobody."""

from collections.abc import Collection
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import AnonymousUser

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.monitoring.selectors import live_state
from web.runs.models import Run
from web.runs.selectors import run_get_visible, run_watchers_allowed


class NoAccessError(Exception):
    """The run exists, and the person may not see it or is suspended."""


class NoRunError(Exception):
    """There is no such run."""


@database_sync_to_async
def watch_admit(user: User | AnonymousUser, slug: str) -> int:
    """Return the run's present number for somebody who may watch it.

    Raises:
        NoAccessError, NoRunError
    """
    if isinstance(user, User) and (user.is_banned or not user.is_active):
        raise NoAccessError
    try:
        return run_get_visible(user, slug).live_seq
    except AppError as error:
        if error.code not in (ErrorCode.RUN_NOT_FOUND, ErrorCode.BARRED):
            raise
        raise (NoAccessError if Run.objects.filter(slug=slug).exists() else NoRunError) from None


@database_sync_to_async
def watchers_allowed(slug: str, user_ids: Collection[int | None]) -> set[int | None]:
    """Return those of the watchers (None: not signed in) who still may watch."""
    return run_watchers_allowed(slug, user_ids)


@database_sync_to_async
def state_read(slug: str) -> dict[str, Any]:
    """Return the run's live state; who may see it was asked before."""
    return live_state(Run.objects.get(slug=slug))
