"""What was noticed about machines, and the organiser's word on it."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from web.contributions.grounds import SUSPICION_REMEDIES, SUSPICION_TEXTS, SuspicionKind
from web.contributions.ledger import entries_waiting
from web.contributions.models import Suspicion
from web.contributions.suspicions import suspicion_decide
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.forms import SuspicionForm
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import Right

_SHOWN = 200


@run_desk
@require_safe
def suspicions_page(request: DeskRequest, run: Run) -> HttpResponse:
    """The open ones, and those that were decided."""
    rows = Suspicion.objects.filter(run=run).select_related("device__user", "decided_by")
    is_open = {"state": Suspicion.State.OPEN}
    context = {
        "run": run,
        "open": [_row(row) for row in rows.filter(**is_open)[:_SHOWN]],
        "decided": [_row(row) for row in rows.exclude(**is_open).order_by("-decided_at")[:_SHOWN]],
        "waiting": _waiting(run),
        "may_decide": Right.MODERATE in request.rights,
    }
    return render(request, "control/suspicions.html", context)


@run_desk_for(Right.MODERATE)
@require_http_methods(["GET", "HEAD", "POST"])
def suspicion_page(request: DeskRequest, run: Run, suspicion_id: int) -> HttpResponse:
    """One of them: what is behind it, what waits; then the decision."""
    suspicion = _get(run, suspicion_id)
    if suspicion.state != Suspicion.State.OPEN:
        messages.warning(request, "This is decided already.")
        return redirect("control:suspicions", run.slug)
    form = SuspicionForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        is_trusted = form.cleaned_data["decision"] == Suspicion.State.CLEARED
        reason = form.cleaned_data["reason"]
        entries = suspicion_decide(request.user, suspicion, is_trusted=is_trusted, reason=reason)
        verb = "confirmed" if is_trusted else "rejected"
        number = f"{len(entries)} waiting entr{'y was' if len(entries) == 1 else 'ies were'}"
        messages.success(request, f"{suspicion.device.name}: {number} {verb}.")
        return redirect("control:suspicions", run.slug)
    context = {"run": run, "form": form, **_row(suspicion), "waiting": _waiting(run, suspicion)}
    return render(request, "control/suspicion.html", context)


def suspicions_open(run: Run) -> int:
    """Return how many wait for a decision."""
    return Suspicion.objects.filter(run=run, state=Suspicion.State.OPEN).count()


def _get(run: Run, suspicion_id: int) -> Suspicion:
    rows = Suspicion.objects.filter(run=run).select_related("device__user", "run")
    suspicion = rows.filter(pk=suspicion_id).first()
    if suspicion is None:
        raise AppError(ErrorCode.NOT_FOUND, "Nothing of that kind was noticed in this run.")
    return suspicion


def _row(suspicion: Suspicion) -> dict[str, Any]:
    kind = SuspicionKind(suspicion.kind)
    return {
        "suspicion": suspicion,
        "text": SUSPICION_TEXTS[kind],
        "remedy": SUSPICION_REMEDIES[kind],
        "evidence": [(k.replace("_", " "), v) for k, v in suspicion.evidence.items()],
    }


def _waiting(run: Run, suspicion: Suspicion | None = None) -> dict[str, int]:
    """Return how many entries wait, and for how many samples they stand."""
    entries = entries_waiting(run).order_by()
    if suspicion is not None:
        entries = entries.filter(device=suspicion.device)
    sums = entries.aggregate(num=Count("pk"), samples=Sum("samples"))
    return {"num": sums["num"], "samples": sums["samples"] or 0}
