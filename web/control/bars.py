"""Who is shut out of a run, and how far the swarm knows it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from web.accounts.models import User
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.desk import revocations_context
from web.control.forms import BarForm
from web.control.people import person_get
from web.monitoring.models import Peer
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.services import run_bar_add, run_bar_lift


@run_desk
@require_safe
def revocations_fragment(request: DeskRequest, run: Run) -> HttpResponse:
    """The revocation list and who has seen it."""
    context = revocations_context(request, run) | {"run": run}
    return render(request, "control/run_revocations_fragment.html", context)


@run_desk_for(Right.MODERATE)
@require_http_methods(["GET", "HEAD", "POST"])
def person_bar(request: DeskRequest, run: Run, username: str) -> HttpResponse:
    """Say what a bar does; then bar."""
    person = person_get(username)
    form = BarForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        run_bar_add(
            request.user, run, person, form.cleaned_data["reason"], expires_at=form.expires_at()
        )
        messages.success(request, f"{person.username} is barred from {run.title}.")
        return redirect(f"{_desk(run)}#revocations")
    context = {"run": run, "person": person, "form": form, "num_devices": _devices(run, person)}
    return render(request, "control/person_bar.html", context)


@run_desk_for(Right.MODERATE)
@require_POST
def person_unbar(request: DeskRequest, run: Run, username: str) -> HttpResponse:
    """Let a barred person in again."""
    person = person_get(username)
    run_bar_lift(request.user, run, person)
    messages.success(request, f"{person.username} may join {run.title} again.")
    return redirect(f"{_desk(run)}#revocations")


def _desk(run: Run) -> str:
    return redirect("control:run", run.slug).url


def _devices(run: Run, person: User) -> int:
    return Peer.objects.filter(run=run, device__user=person).count()
