"""Webhooks: made at the desk, told on commit, tried again with patience, given up in the end."""

import json
import logging
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.alerts.guard import RefusedAddress, ip_is_public, url_check
from web.alerts.mails import webhook_disabled_mail
from web.alerts.models import Alert, AlertEvent, Webhook, WebhookDelivery
from web.alerts.posting import Letter, Outcome, letter_post
from web.alerts.sealed import SealError, seal, unseal
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.services.runs import organiser_require

logger = logging.getLogger(__name__)
RETRY_SECONDS = (10, 60, 300, 1800, 7200)
"""Between attempts; after the last one the delivery is given up."""
FAILED_LIMIT = 3
"""Deliveries given up in a row after which the webhook is disabled."""
MAX_PER_RUN = 10
KEPT = timedelta(days=30)
_CLAIMED_SECONDS = 60
"""So long nobody else takes a delivery that is being attempted."""
_AT_ONCE = 20


@transaction.atomic
def webhook_create(actor: User, run: Run, url: str) -> tuple[Webhook, str]:
    """Add an address; return it and its secret, which is shown only now.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID.
    """
    organiser_require(actor, run)
    _url_require(url)
    if run.webhooks.count() >= MAX_PER_RUN:
        raise AppError(ErrorCode.BODY_INVALID, f"A run has at most {MAX_PER_RUN} webhooks.")
    secret = f"whsec_{secrets.token_urlsafe(32)}"
    webhook = Webhook.objects.create(
        run=run, url=url, secret=seal(secret), created_by=actor, created_at=timezone.now()
    )
    host = url_check(url)[0]
    audit_record(actor, "webhook.created", f"{run.slug}/{webhook.public_id}", {"host": host})
    return webhook, secret


@transaction.atomic
def webhook_delete(actor: User, webhook: Webhook) -> None:
    """Forget an address, its secret and its log.

    Raises:
        AppError: FORBIDDEN.
    """
    organiser_require(actor, webhook.run)
    if _lock(webhook.pk) is None:
        return  # somebody else was faster
    webhook.delete()
    target = f"{webhook.run.slug}/{webhook.public_id}"
    audit_record(actor, "webhook.deleted", target, {"host": webhook.host})


@transaction.atomic
def webhook_enable(actor: User, webhook: Webhook) -> None:
    """Use an address again that was disabled after failures.

    Raises:
        AppError: FORBIDDEN.
    """
    organiser_require(actor, webhook.run)
    row = _lock(webhook.pk)
    if row is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such webhook.")
    data = {"before": {"disabled": row.disabled_reason}, "after": {"disabled": ""}}
    row.disabled_at, row.disabled_reason, row.num_failed = None, "", 0
    row.save(update_fields=("disabled_at", "disabled_reason", "num_failed"))
    audit_record(actor, "webhook.enabled", f"{webhook.run.slug}/{webhook.public_id}", data)


@transaction.atomic
def webhook_test(actor: User, webhook: Webhook) -> WebhookDelivery:
    """Send a message that says that it is a test; it is tried once, also when disabled.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (a test of this run waits already: each may take all
            the time that an answer is waited for, and alerts wait behind it).
    """
    organiser_require(actor, webhook.run)
    waiting = WebhookDelivery.objects.filter(
        webhook__run=webhook.run, event="webhook.test", state=WebhookDelivery.State.WAITING
    )
    if waiting.exists():
        text = "A test of this run is still on its way: its outcome stands in the log in a moment."
        raise AppError(ErrorCode.BODY_INVALID, text)
    body = {"event": "webhook.test", "run": webhook.run.slug, "at": timezone.now().isoformat()}
    delivery = _queue(webhook, "webhook.test", body, timezone.now())
    audit_record(actor, "webhook.tested", f"{webhook.run.slug}/{webhook.public_id}")
    return delivery


def webhooks_queue(alert: Alert, event: AlertEvent, now: datetime) -> None:
    """Queue what happened to an alert for each of its run's webhooks. Call it in a transaction."""
    if alert.run is None:
        return
    for webhook in alert.run.webhooks.filter(disabled_at=None):
        _queue(webhook, f"alert.{event.kind}", alert_body(alert, event), now)


def alert_body(alert: Alert, event: AlertEvent) -> dict[str, Any]:
    """Return what a webhook is told."""
    slug = alert.run.slug if alert.run else ""
    return {
        "event": f"alert.{event.kind}",
        "at": event.at.isoformat(),
        "by": event.actor.username if event.actor else "",
        "text": event.text,
        "run": slug,
        "alert": {
            "id": alert.public_id,
            "kind": alert.kind,
            "title": alert.title,
            "severity": alert.severity,
            "state": alert.state,
            "sentence": alert.sentence,
            "remedy": alert.remedy,
            "evidence": alert.evidence,
            "opened_at": alert.opened_at.isoformat(),
        },
        "link": f"{settings.PUBLIC_URL}/control/runs/{slug}/alerts/",
    }


def deliveries_due(now: datetime) -> list[int]:
    """Return deliveries whose time has come, the oldest first."""
    rows = WebhookDelivery.objects.filter(
        state=WebhookDelivery.State.WAITING, next_at__lte=now
    ).order_by("next_at")
    return list(rows.values_list("pk", flat=True)[:_AT_ONCE])


def delivery_attempt(delivery_id: int, now: datetime) -> bool:
    """Try one delivery that is due; return whether it was tried. Two callers try it once."""
    rows = WebhookDelivery.objects.filter(
        pk=delivery_id, state=WebhookDelivery.State.WAITING, next_at__lte=now
    )
    claimed = rows.update(
        next_at=now + timedelta(seconds=_CLAIMED_SECONDS),
        num_attempts=F("num_attempts") + 1,
        attempted_at=now,
    )
    if not claimed:
        return False
    delivery = WebhookDelivery.objects.select_related("webhook__run").get(pk=delivery_id)
    _record(delivery, _post(delivery), now)
    return True


def deliveries_prune(now: datetime) -> int:
    """Forget what was delivered or given up long ago; return how many rows."""
    old = WebhookDelivery.objects.exclude(state=WebhookDelivery.State.WAITING)
    return old.filter(created_at__lt=now - KEPT).delete()[0]


def _queue(webhook: Webhook, event: str, body: dict[str, Any], now: datetime) -> WebhookDelivery:
    from web.alerts.tasks import webhook_deliver_task  # it needs this module

    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event=event, body=body, created_at=now, next_at=now
    )
    transaction.on_commit(lambda: _send_soon(webhook_deliver_task, delivery.pk))
    return delivery


def _send_soon(task: Any, delivery_id: int) -> None:
    try:
        task.delay(delivery_id)
    except OperationalError as error:  # beat finds it a little later
        logger.warning("webhook delivery %s waits: %s", delivery_id, error)


def _post(delivery: WebhookDelivery) -> Outcome:
    webhook = delivery.webhook
    if webhook.disabled_at and delivery.event != "webhook.test":
        return Outcome(False, "The webhook is disabled.")
    try:
        secret = unseal(webhook.secret)
    except SealError as error:
        return Outcome(False, str(error))
    body = json.dumps(delivery.body, separators=(",", ":")).encode()
    letter = Letter(webhook.url, body, secret, delivery.event, delivery.public_id)
    return letter_post(letter, is_private_allowed=settings.WEBHOOK_PRIVATE)


@transaction.atomic
def _record(delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    webhook, tried = _lock(delivery.webhook_id), delivery.num_attempts
    if webhook is None:
        return  # it was forgotten meanwhile, with its log
    is_last = tried > len(RETRY_SECONDS) or delivery.event == "webhook.test"
    if outcome.is_delivered:
        delivery.state, delivery.next_at = WebhookDelivery.State.DELIVERED, None
        webhook.num_failed = 0
        webhook.save(update_fields=("num_failed",))
    elif is_last or webhook.disabled_at:
        delivery.state, delivery.next_at = WebhookDelivery.State.GIVEN_UP, None
    else:
        delivery.next_at = now + timedelta(seconds=RETRY_SECONDS[tried - 1])
    delivery.status, delivery.outcome = outcome.status, outcome.text
    delivery.seconds = outcome.seconds
    delivery.save(update_fields=("state", "next_at", "status", "outcome", "seconds"))
    logger.info("run %s: %s: %s", webhook.run.slug, webhook, outcome.text)
    is_given_up = delivery.state == WebhookDelivery.State.GIVEN_UP
    if is_given_up and not webhook.disabled_at and delivery.event != "webhook.test":
        _count_failure(webhook, outcome, now)


def _count_failure(webhook: Webhook, outcome: Outcome, now: datetime) -> None:
    webhook.num_failed += 1
    if webhook.num_failed >= FAILED_LIMIT:
        text = f"{webhook.num_failed} messages could not be delivered: {outcome.text}"
        webhook.disabled_at, webhook.disabled_reason = now, text[:200]
    webhook.save(update_fields=("num_failed", "disabled_at", "disabled_reason"))
    if webhook.disabled_at is None:
        return
    target, reason = f"{webhook.run.slug}/{webhook.public_id}", webhook.disabled_reason
    audit_record(None, "webhook.disabled", target, {"reason": reason})
    transaction.on_commit(lambda: webhook_disabled_mail(webhook, reason))


def _lock(webhook_id: int) -> Webhook | None:
    """Lock a webhook, always before its deliveries and before the end of the audit chain."""
    rows = Webhook.objects.select_for_update(of=("self",)).select_related("run")
    return rows.filter(pk=webhook_id).first()


def _url_require(url: str) -> None:
    """Refuse early what will be refused on every delivery; names are resolved then."""
    try:
        host, _ = url_check(url)
    except RefusedAddress as error:
        raise AppError(ErrorCode.BODY_INVALID, f"url: {error}") from None
    if len(url) > 500:
        raise AppError(ErrorCode.BODY_INVALID, "url: at most 500 characters.")
    looks_like_ip = host.replace(".", "").isdigit() or ":" in host
    is_private = host == "localhost" or (looks_like_ip and not ip_is_public(host))
    if is_private and not settings.WEBHOOK_PRIVATE:
        raise AppError(ErrorCode.BODY_INVALID, "url: addresses of private networks are not called.")
