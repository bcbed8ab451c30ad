"""What every page knows of the visitor's desk; asked of the database only where it is shown."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest

from web.accounts.models import User
from web.alerts.selectors import alerts_count
from web.control.access import desk_runs
from web.control.queue import queue_items


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
    def num_waiting(self) -> int:
        """How many things wait in the queue."""
        if not self.is_open:
            return 0
        return len(queue_items(self._user, list(desk_runs(self._user))))

    @cached_property
    def num_alerts(self) -> int:
        """How many alerts nobody has acknowledged yet."""
        if not self.is_open:
            return 0
        return alerts_count(desk_runs(self._user), with_site=self._user.is_staff)


def desk(request: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"desk": Desk(getattr(request, "user", None))}
