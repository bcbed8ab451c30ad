"""What every page knows of the visitor's desk; asked of the database only where it is shown."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest

from web.accounts.models import User
from web.alerts.selectors import alerts_count
from web.control.access import desk_runs
from web.control.queue import QueueItem, queue_items


class Desk:
    """The visitor's place at the desk."""

    def __init__(self, user: Any) -> None:
        self._user = user

    @cached_property
    def is_open(self) -> bool:
        """Whether there is anything at the desk for them."""
        if not isinstance(self._user, User) or self._user.is_banned:
            return False
        return self._user.is_staff or self._user.is_superuser or desk_runs(self._user).exists()

    @cached_property
    def items(self) -> list[QueueItem]:
        """What waits in the queue; for the count beside the link and for the queue's own page."""
        return queue_items(self._user, list(desk_runs(self._user))) if self.is_open else []

    @cached_property
    def num_waiting(self) -> int:
        """How many things wait in the queue."""
        return len(self.items)

    @cached_property
    def num_alerts(self) -> int:
        """How many alerts nobody has acknowledged yet."""
        if not self.is_open:
            return 0
        return alerts_count(desk_runs(self._user), with_site=self._user.is_staff)


def desk_of(request: HttpRequest) -> Desk:
    """Return the desk of a request's visitor: one for view and page, so each asks only once."""
    found: Desk | None = getattr(request, "_desk", None)
    if found is None:
        found = Desk(getattr(request, "user", None))
        request._desk = found  # type: ignore[attr-defined]
    return found


def desk(request: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"desk": desk_of(request)}
