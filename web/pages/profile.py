"""A volunteer's public page."""

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from web.accounts.selectors import profile_visible
from web.contributions.models import ContributionTotal
from web.runs.selectors import runs_visible


@require_safe
def profile_page(request: HttpRequest, username: str) -> HttpResponse:
    """Totals per run, as far as the viewer may see the runs."""
    person = profile_visible(request.user, username)
    totals = list(
        ContributionTotal.objects.filter(user=person, run__in=runs_visible(request.user))
        .select_related("run")
        .annotate(device_hours=F("seconds") / 3600)
        .order_by("-samples")
    )
    context = {
        "person": person,
        "totals": totals,
        "samples": sum(total.samples for total in totals),
        "device_hours": sum(total.seconds for total in totals) / 3600,
    }
    return render(request, "pages/profile.html", context)
