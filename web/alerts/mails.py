"""Alerts by mail: what happened since the last mail, in one mail a person."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from web.accounts.models import User
from web.alerts.models import AlertEvent, AlertMail, Webhook
from web.alerts.selectors import alert_may_handle

logger = logging.getLogger(__name__)
MAX_LINES = 30
"""Of one mail; it says how many more there are."""


def alerts_mail(now: datetime) -> int:
    """Mail what opened and closed since the last mail; return how many mails were sent.

    What cannot be sent is not tried again: the desk has it, and the next alert tries anew.
    """
    rows = AlertEvent.objects.filter(mailed_at=None).select_related("alert__run").order_by("id")
    events = list(rows[:1000])
    mine = [event.pk for event in events]
    # Whoever changes a row from waiting to mailed sends it.
    if not AlertEvent.objects.filter(pk__in=mine, mailed_at=None).update(mailed_at=now):
        return 0
    wanted: dict[User, list[AlertEvent]] = defaultdict(list)
    runs = {event.alert.run_id for event in events}
    for mail in AlertMail.objects.select_related("user", "run"):
        if mail.run_id in runs and alert_may_handle(mail.user, mail.run):
            wanted[mail.user] += [e for e in events if e.alert.run_id == mail.run_id]
    return sum(_send(user, sorted(lines, key=lambda e: e.pk)) for user, lines in wanted.items())


def webhook_disabled_mail(webhook: Webhook, reason: str) -> None:
    """Tell those who get the run's alerts that a webhook is not used any more."""
    context = {"webhook": webhook, "reason": reason, "public_url": settings.PUBLIC_URL}
    text = render_to_string("emails/webhook_disabled.txt", context)
    for mail in AlertMail.objects.filter(run=webhook.run).select_related("user"):
        if alert_may_handle(mail.user, webhook.run):
            _post(mail.user, f"{webhook.run.title}: a webhook was disabled", text)


def _send(user: User, events: Sequence[AlertEvent]) -> bool:
    opened = sum(event.kind == AlertEvent.Kind.OPENED for event in events)
    if len(events) == 1:
        where = events[0].alert.run.title if events[0].alert.run else "the site"
        subject = f"{where}: {events[0].alert.title} {events[0].kind}"
    else:
        subject = f"{opened} alerts opened, {len(events) - opened} closed"
    context = {
        "user": user,
        "events": events[:MAX_LINES],
        "num_more": max(0, len(events) - MAX_LINES),
        "public_url": settings.PUBLIC_URL,
    }
    return _post(user, subject, render_to_string("emails/alerts.txt", context))


def _post(user: User, subject: str, text: str) -> bool:
    if not user.email or user.is_banned:
        return False
    prefix = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX
    try:
        subject = " ".join(f"{prefix}{subject}".split())
        send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, [user.email])
    except (SMTPException, OSError) as error:
        logger.error("alert mail to account %s was not sent: %s", user.pk, error)
        return False
    return True
