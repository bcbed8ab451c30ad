"""Who may sit at the desk: organisers at that of their runs, the site's staff at all."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run, RunMember
from web.runs.selectors import run_get_visible, run_is_organised_by

P = ParamSpec("P")


class DeskRequest(HttpRequest):
    """A request of somebody who has logged in."""

    user: User


View = Callable[Concatenate[DeskRequest, P], HttpResponse]
RunView = Callable[Concatenate[DeskRequest, Run, P], HttpResponse]


def desk_runs(user: User) -> QuerySet[Run]:
    """Return the runs at whose desk the account may sit."""
    runs = Run.objects.select_related("organiser")
    if user.is_staff:
        return runs
    own = Q(organiser=user) | Q(members__user=user, members__part=RunMember.Part.ORGANISER)
    return runs.filter(own).distinct()


def desk_run(user: User, slug: str) -> Run:
    """Return a run at whose desk the account may sit.

    Raises:
        AppError: RUN_NOT_FOUND (not visible to them), FORBIDDEN.
    """
    if user.is_staff:
        run = Run.objects.select_related("organiser", "draft__edited_by").filter(slug=slug).first()
        if run is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND)
        return run
    run = run_get_visible(user, slug)
    if not run_is_organised_by(user, run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may control it.")
    return run


def run_desk(view: "RunView[P]") -> "Callable[..., HttpResponse]":
    """Give a view the run that the address names, if the visitor may control it."""

    @login_required
    @wraps(view)
    def wrapped(request: DeskRequest, slug: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        return view(request, desk_run(request.user, slug), *args, **kwargs)

    return wrapped


def staff_only(view: "View[P]") -> "Callable[..., HttpResponse]":
    """Open a view to the site's staff only."""

    @login_required
    @wraps(view)
    def wrapped(request: DeskRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_staff:
            raise AppError(ErrorCode.FORBIDDEN, "Only the site's staff may do this.")
        return view(request, *args, **kwargs)

    return wrapped
