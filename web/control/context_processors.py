"""What the desk's pages may use beside their own context."""

from functools import cache
from typing import Any

from django.http import HttpRequest

from web.alerts.selectors import alerts_count
from web.control.access import desk_runs


def alerts(request: HttpRequest) -> dict[str, Any]:
    """Return how many alerts wait for somebody; counted only where a page shows it."""

    @cache
    def count() -> int:
        user = request.user
        if not user.is_authenticated:
            return 0
        return alerts_count(desk_runs(user), with_site=user.is_staff)

    return {"alerts_waiting": count}
