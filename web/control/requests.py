"""People who ask to join a run, and the moderator's answer."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.forms import JoinDecisionForm
from web.core.errors import AppError
from web.runs.models import Run, RunJoinRequest
from web.runs.roles import Right
from web.runs.services import join_request_approve, join_request_refuse

_SHOWN = 200
_State = RunJoinRequest.State
_IN_WORDS = (ErrorCode.BODY_INVALID, ErrorCode.BANNED, ErrorCode.BARRED)
"""Somebody else was faster, or the person is shut out: said on the list."""


@run_desk
@require_safe
def requests_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Those that wait, and those that were decided."""
    rows = RunJoinRequest.objects.filter(run=run).select_related("user", "decided_by")
    context = {
        "run": run,
        "waiting": list(rows.filter(state=_State.PENDING).order_by("asked_at")[:_SHOWN]),
        "decided": list(rows.exclude(state=_State.PENDING).order_by("-decided_at")[:_SHOWN]),
        "may_decide": Right.MODERATE in request.rights,
    }
    return render(request, "control/requests.html", context)


@run_desk_for(Right.MODERATE)
@require_http_methods(["GET", "HEAD", "POST"])
def request_page(request: DeskRequest, run: Run, username: str) -> HttpResponse:
    """What somebody wrote; then the decision."""
    rows = RunJoinRequest.objects.select_related("user", "run", "decided_by")
    asked = rows.filter(run=run, user__username=username).first()
    if asked is None:
        raise AppError(ErrorCode.NOT_FOUND, "This person has not asked to join the run.")
    if asked.state == _State.APPROVED:
        messages.warning(request, f"{username} is approved already.")
        return redirect("control:requests", run.slug)
    data = request.POST if request.method == "POST" else None
    form = JoinDecisionForm(data, initial={"seen": asked.state, "words": asked.text})
    if request.method == "POST" and form.is_valid():
        return _decide(request, run, asked, form)
    return render(request, "control/request.html", {"run": run, "asked": asked, "form": form})


def _decide(
    request: DeskRequest, run: Run, asked: RunJoinRequest, form: JoinDecisionForm
) -> HttpResponse:
    reason, name = form.cleaned_data["reason"], asked.user.username
    # Of the form's own, for which no words and a form without them are the same.
    seen, words = form.cleaned_data["seen"], form.data.get("words")
    try:
        if form.cleaned_data["decision"] == _State.APPROVED:
            join_request_approve(request.user, asked, reason, seen=seen, words=words)
            messages.success(request, f"{name} may join {run.title} now.")
        else:
            join_request_refuse(request.user, asked, reason, seen=seen, words=words)
            messages.success(request, f"{name} was refused and reads why on the page Join.")
    except AppError as error:
        if error.code not in _IN_WORDS:
            raise
        messages.warning(request, error.detail)
    return redirect("control:requests", run.slug)
