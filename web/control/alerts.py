"""Alerts at the desk: what is wrong, who looks after it, who is told, and by which rules."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.alerts.models import Alert, AlertMail
from web.alerts.selectors import alert_may_handle, alerts_open, muted_until
from web.alerts.services import alert_acknowledge, alert_mail_set, alert_mute
from web.control.access import DeskRequest, desk_run, desk_runs, run_desk, staff_only
from web.control.forms_alerts import AcknowledgeForm, MuteForm
from web.control.refusals import form_refused, refusal_said
from web.core.errors import AppError
from web.runs.models import Run

PER_PAGE = 50


@login_required
@require_safe
def alerts_page(request: DeskRequest) -> HttpResponse:
    """Alerts of all runs at whose desk the visitor sits, and for the staff those of the site."""
    runs = desk_runs(request.user)
    is_staff = request.user.is_staff
    if not is_staff and not runs.exists():
        raise AppError(ErrorCode.FORBIDDEN, "You organise no run.")
    closed = Alert.objects.filter(state=Alert.State.CLOSED)
    mine = closed.filter(run__in=runs)
    history = (mine | closed.filter(run=None)) if is_staff else mine
    return _page(request, None, alerts_open(runs, with_site=is_staff), history)


@run_desk
@require_safe
def run_alerts_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Alerts of one run."""
    history = Alert.objects.filter(run=run, state=Alert.State.CLOSED)
    return _page(request, run, alerts_open([run], with_site=False), history)


@login_required
@require_safe
def alert_page(request: DeskRequest, public_id: str) -> HttpResponse:
    """One alert: its evidence, its history, and what can be done about it."""
    return _alert_page(request, _alert_get(request, public_id))


@login_required
@require_POST
def alert_acknowledge_post(request: DeskRequest, public_id: str) -> HttpResponse:
    """Say that somebody looks after it."""
    alert = _alert_get(request, public_id)
    form = AcknowledgeForm(request.POST, prefix="acknowledge")
    try:
        if form.is_valid():
            alert_acknowledge(request.user, alert, form.cleaned_data["reason"])
            messages.success(request, f"{alert.title}: acknowledged.")
            return redirect("control:alert", alert.public_id)
    except AppError as error:
        form_refused(form, error)
        messages.error(request, error.detail)  # the form itself may not be offered any more
    return _alert_page(request, alert, acknowledge=form)


@login_required
@require_POST
def alert_mute_post(request: DeskRequest, public_id: str) -> HttpResponse:
    """Tell nobody of its kind for some time."""
    alert = _alert_get(request, public_id)
    form = MuteForm(request.POST, prefix="mute")
    try:
        if form.is_valid():
            until = timezone.now() + timedelta(hours=int(form.cleaned_data["hours"]))
            alert_mute(request.user, alert, until, form.cleaned_data["reason"])
            told = "muted" if until > timezone.now() else "heard again"
            messages.success(request, f"{alert.title}: {told}.")
            return redirect("control:alert", alert.public_id)
    except AppError as error:
        form_refused(form, error)
    return _alert_page(request, alert, mute=form)


@staff_only
@require_POST
def site_mail_post(request: DeskRequest) -> HttpResponse:
    """Begin or end one's own mail about the site's alerts."""
    is_wanted = request.POST.get("is_wanted") == "1"
    told = f"The site's alerts go to {request.user.email}." if is_wanted else "You get no mail."
    with refusal_said(request):
        alert_mail_set(request.user, None, is_wanted=is_wanted)
        messages.success(request, told)
    return redirect("control:alerts")


def _page(
    request: DeskRequest, run: Run | None, now_open: QuerySet[Alert], history: QuerySet[Alert]
) -> HttpResponse:
    page = Paginator(history.select_related("run"), PER_PAGE).get_page(request.GET.get("page"))
    shown = list(now_open[:200])
    muted = muted_until(shown, timezone.now())
    context: dict[str, Any] = {
        "run": run,
        "open": [{"alert": a, "muted_until": muted.get((a.run_id, a.kind))} for a in shown],
        "page": page,
    }
    if run is None and request.user.is_staff:
        mails = AlertMail.objects.filter(run=None, user=request.user)
        context |= {"is_staff": True, "gets_mail": mails.exists()}
    return render(request, "control/alerts.html", context)


def _alert_page(
    request: DeskRequest,
    alert: Alert,
    *,
    acknowledge: AcknowledgeForm | None = None,
    mute: MuteForm | None = None,
) -> HttpResponse:
    """Return an alert's page; with a form that was sent, what was typed stands in it."""
    is_refused = acknowledge is not None or mute is not None
    may_handle = alert_may_handle(request.user, alert.run)
    if is_refused and not may_handle:
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may do this.")
    alert.refresh_from_db(fields=("state",))
    context = {
        "alert": alert,
        "run": alert.run,
        "events": list(alert.events.select_related("actor")),
        "evidence": [(k.replace("_", " "), v) for k, v in alert.evidence.items() if v is not None],
        "muted_until": muted_until([alert], timezone.now()).get((alert.run_id, alert.kind)),
        "may_handle": may_handle,
        "acknowledge": acknowledge or AcknowledgeForm(prefix="acknowledge"),
        "mute": mute or MuteForm(prefix="mute"),
    }
    return render(request, "control/alert.html", context, status=422 if is_refused else 200)


def _alert_get(request: DeskRequest, public_id: str) -> Alert:
    """Return an alert of a run at whose desk the visitor may sit; the site's for the staff."""
    alert = Alert.objects.select_related("run__organiser").filter(public_id=public_id).first()
    if alert is None:
        if not request.user.is_staff and not desk_runs(request.user).exists():
            raise AppError(ErrorCode.FORBIDDEN, "You organise no run.")
        raise AppError(ErrorCode.NOT_FOUND, "There is no such alert.")
    if alert.run is not None:
        desk_run(request.user, alert.run.slug)
    elif not request.user.is_staff:
        raise AppError(ErrorCode.FORBIDDEN, "Only the site's staff may see this.")
    return alert
