"""By which rules a run's alerts open, and who is told of them."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.alerts.models import AlertMail, Webhook, WebhookDelivery
from web.alerts.sealed import SealError, seal, unseal
from web.alerts.selectors import values_of
from web.alerts.services import alert_mail_set, alert_settings_change
from web.alerts.webhooks import webhook_create, webhook_delete, webhook_enable, webhook_test
from web.control.access import DeskRequest, run_desk
from web.control.forms_alerts import RulesForm, WebhookForm
from web.control.refusals import form_refused, refusal_said
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.selectors import run_is_organised_by

_LOG_LINES = 30
_NEW_KEY = "webhook-secret-{}"
"""Where the session keeps a new secret between two pages."""


@run_desk
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: DeskRequest, run: Run) -> HttpResponse:
    """The rules of a run, its webhooks with their log, and one's own mail."""
    data = request.POST if request.method == "POST" else None
    rules = RulesForm(data, values=values_of(run))
    if data is not None:
        _organiser_only(request.user, run)
        if rules.is_valid():
            alert_settings_change(request.user, run, rules.values())
            messages.success(request, "The rules hold from the next check on.")
            return redirect("control:alert_settings", run.slug)
    context = _context(request, run, rules)
    if request.method != "GET" or not context["is_organiser"]:
        return render(request, "control/alert_settings.html", context)
    context["new_secret"] = _secret_take(request, run)
    response = render(request, "control/alert_settings.html", context)
    if context["new_secret"]:
        response["Cache-Control"] = "no-store"
    return response


@run_desk
@require_POST
def mail_post(request: DeskRequest, run: Run) -> HttpResponse:
    """Begin or end one's own mail."""
    is_wanted = request.POST.get("is_wanted") == "1"
    told = f"Alerts go to {request.user.email}." if is_wanted else "You get no mail about alerts."
    with refusal_said(request):
        alert_mail_set(request.user, run, is_wanted=is_wanted)
        messages.success(request, told)
    return redirect("control:alert_settings", run.slug)


@run_desk
@require_POST
def webhook_add_post(request: DeskRequest, run: Run) -> HttpResponse:
    """Add a webhook; the page that follows shows its secret once, so a reload adds none."""
    _organiser_only(request.user, run)
    form = WebhookForm(request.POST)
    try:
        if form.is_valid():
            _, secret = webhook_create(request.user, run, form.cleaned_data["url"])
            # Sessions are rows of the database, in which no secret stands in the open.
            request.session[_NEW_KEY.format(run.pk)] = seal(secret)
            return redirect("control:alert_settings", run.slug)
    except AppError as error:
        form_refused(form, error)
    context = _context(request, run, RulesForm(values=values_of(run))) | {"webhook_form": form}
    return render(request, "control/alert_settings.html", context)


@run_desk
@require_POST
def webhook_test_post(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """Send a test; the log shows how it went."""
    webhook = _webhook(request.user, run, public_id)
    with refusal_said(request):
        webhook_test(request.user, webhook)
        messages.success(request, "A test is on its way: the log shows how it went.")
    return redirect("control:alert_settings", run.slug)


@run_desk
@require_POST
def webhook_enable_post(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """Use a webhook again."""
    webhook_enable(request.user, _webhook(request.user, run, public_id))
    messages.success(request, "The webhook is used again.")
    return redirect("control:alert_settings", run.slug)


@run_desk
@require_POST
def webhook_delete_post(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """Forget a webhook."""
    webhook_delete(request.user, _webhook(request.user, run, public_id))
    messages.success(request, "The webhook is forgotten.")
    return redirect("control:alert_settings", run.slug)


def _context(request: DeskRequest, run: Run, rules: RulesForm) -> dict[str, Any]:
    log = WebhookDelivery.objects.filter(webhook__run=run).select_related("webhook")
    is_organiser = run_is_organised_by(request.user, run)
    return {
        "run": run,
        "rules": rules,
        "webhooks": list(run.webhooks.all()),
        "deliveries": list(log[:_LOG_LINES]),
        "webhook_form": WebhookForm(),
        "gets_mail": AlertMail.objects.filter(run=run, user=request.user).exists(),
        "is_organiser": is_organiser,
    }


def _secret_take(request: DeskRequest, run: Run) -> str:
    """Return the secret of the webhook that was just added, only this once; '' when none was."""
    sealed = request.session.pop(_NEW_KEY.format(run.pk), "")
    try:
        return unseal(sealed) if sealed else ""
    except SealError:
        return ""  # the site has got another key meanwhile


def _webhook(user: User, run: Run, public_id: str) -> Webhook:
    _organiser_only(user, run)
    webhook = run.webhooks.filter(public_id=public_id).first()
    if webhook is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such webhook.")
    return webhook


def _organiser_only(user: User, run: Run) -> None:
    if not run_is_organised_by(user, run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may do this.")
