"""Ban, recompute, roll back: one guided way from the question to the result."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.forms import ConfirmForm, HarmForm
from web.control.undo_parts import board_effect, harm_of, progress_of, targets_of
from web.core.errors import AppError
from web.monitoring.models import HarmUndo
from web.monitoring.services.harm import (
    Harm,
    HarmPreview,
    harm_actions,
    harm_preview,
    harm_undo,
)
from web.runs.models import Run
from web.runs.roles import Right


@run_desk_for(Right.ORGANISE)
@require_http_methods(["GET", "HEAD", "POST"])
def undo_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Choose whose work and from when; see what would happen; confirm."""
    asked = request.POST if request.method == "POST" else request.GET
    form = HarmForm(asked if "target" in asked else None, targets=targets_of(run))
    if not (form.is_bound and form.is_valid()):
        form.start_with(request.GET.get("user", ""), request.GET.get("from_epoch", ""))
        return render(request, "control/undo.html", _context(run, form))
    harm = harm_of(run, form.cleaned_data["target"], form.cleaned_data["from_epoch"])
    preview = harm_preview(harm)
    confirm = ConfirmForm(
        request.POST if request.method == "POST" else None,
        actions=harm_actions(request.user, harm),
        checkpoint=preview.checkpoint,
    )
    if request.method == "POST" and confirm.is_valid():
        return _undo(request, harm, preview, confirm)
    context = _context(run, form) | {
        "harm": harm,
        "preview": preview,
        "effect": board_effect(harm, preview),
        "confirm": confirm,
    }
    return render(request, "control/undo.html", context)


def _undo(
    request: DeskRequest, harm: Harm, preview: HarmPreview, confirm: ConfirmForm
) -> HttpResponse:
    data = confirm.cleaned_data
    undo = harm_undo(
        request.user,
        harm,
        action=HarmUndo.Action(data["action"]),
        checkpoint=preview.checkpoint if data["rewind"] else None,
        reason=data["reason"],
    )
    messages.success(request, "Done. This page shows how far the swarm is.")
    return redirect("control:undone", harm.run.slug, undo.public_id)


def _context(run: Run, form: HarmForm) -> dict[str, Any]:
    past = run.harm_undos.select_related("user", "actor")[:10]
    return {"run": run, "form": form, "past": list(past)}


@run_desk
@require_safe
def undone_page(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """What was done, and how far it has come."""
    undo = _get(run, public_id)
    return render(request, "control/undone.html", {"run": run, "undo": undo, **progress_of(undo)})


@run_desk
@require_safe
def undone_fragment(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """The part of it that changes."""
    undo = _get(run, public_id)
    context = {"run": run, "undo": undo, **progress_of(undo)}
    return render(request, "control/undone_fragment.html", context)


def _get(run: Run, public_id: str) -> HarmUndo:
    rows = run.harm_undos.select_related("user", "device", "actor", "config", "run")
    undo = rows.filter(public_id=public_id).first()
    if undo is None:
        raise AppError(ErrorCode.NOT_FOUND, "Nothing of that kind was undone in this run.")
    return undo
