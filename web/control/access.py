"""Who may sit at the desk, and what they may do there: asked before each view."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import DESK_PARTS, REFUSALS, Right
from web.runs.selectors import run_get_visible, run_rights

P = ParamSpec("P")


class DeskRequest(HttpRequest):
    """A request of somebody who has logged in."""

    user: User
    rights: frozenset[Right]
    """In the run that the address names."""


View = Callable[Concatenate[DeskRequest, P], HttpResponseBase]
RunView = Callable[Concatenate[DeskRequest, Run, P], HttpResponseBase]


def desk_runs(user: User) -> QuerySet[Run]:
    """Return the runs at whose desk the account may sit."""
    runs = Run.objects.select_related("organiser")
    if user.is_staff or user.is_superuser:
        return runs
    own = Q(organiser=user) | Q(members__user=user, members__part__in=DESK_PARTS)
    return runs.filter(own).distinct()


def desk_run(user: User, slug: str, right: Right = Right.LOOK) -> tuple[Run, frozenset[Right]]:
    """Return a run at whose desk the account may sit, and all that it may do there.

    Raises:
        AppError: RUN_NOT_FOUND (not visible to them), FORBIDDEN (``right`` is not theirs).
    """
    if user.is_staff or user.is_superuser:
        run = Run.objects.select_related("organiser", "draft__edited_by").filter(slug=slug).first()
        if run is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND)
    else:
        run = run_get_visible(user, slug)
    rights = run_rights(user, run)
    if right not in rights:
        raise AppError(ErrorCode.FORBIDDEN, REFUSALS[right])
    return run, rights


def run_desk_for(right: Right) -> "Callable[[RunView[P]], Callable[..., HttpResponseBase]]":
    """Give a view the run that the address names, if the visitor has the right.

    ``request.rights`` says what else the visitor may do, for what the page offers.
    """

    def decorate(view: "RunView[P]") -> "Callable[..., HttpResponseBase]":
        @login_required
        @wraps(view)
        def wrapped(
            request: DeskRequest, slug: str, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            run, request.rights = desk_run(request.user, slug, right)
            return view(request, run, *args, **kwargs)

        return wrapped

    return decorate


def run_desk(view: "RunView[P]") -> "Callable[..., HttpResponseBase]":
    """Give a view the run that the address names, if the visitor may look at its desk."""
    return run_desk_for(Right.LOOK)(view)


def staff_only(view: "View[P]") -> "Callable[..., HttpResponseBase]":
    """Open a view to the site's staff only."""

    @login_required
    @wraps(view)
    def wrapped(request: DeskRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not (request.user.is_staff or request.user.is_superuser):
            raise AppError(ErrorCode.FORBIDDEN, "Only the site's staff may do this.")
        return view(request, *args, **kwargs)

    return wrapped
