"""The front page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from web.monitoring.selectors import runs_summaries


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What Beeyard is, and the runs."""
    return render(request, "pages/home.html", {"runs": runs_summaries(request.user)})


@require_safe
def runs_redirect(request: HttpRequest) -> HttpResponse:
    """The list of runs is on the front page."""
    return redirect("pages:home", permanent=True)
