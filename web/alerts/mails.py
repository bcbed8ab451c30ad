"""Alerts by mail: what happened since the last mail, in one mail a person."""

import logging
import secrets
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F, Q
from django.template.loader import render_to_string

from web.accounts.models import User
from web.alerts.models import AlertEvent, AlertMail, Webhook
from web.alerts.selectors import alert_may_handle

logger = logging.getLogger(__name__)
MAX_LINES = 30
"""Of one mail; it says how many more there are."""
RETRY = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360))
"""Between tries; after the last one an event is given up."""
_CLAIMED = timedelta(minutes=10)
"""So long nobody else mails what is being mailed; a killed process holds it no longer."""
_AT_ONCE = 1000


def alerts_mail(now: datetime) -> int:
    """Mail what opened and closed since the last mail; return how many mails were sent.

    What cannot be sent is tried again, for hours; then the desk alone has it.
    """
    claim = _claim(now)
    rows = AlertEvent.objects.filter(mailed_at=None, mail_claim=claim).select_related("alert__run")
    events = list(rows.order_by("id"))
    sent, missed = 0, set[int]()
    for user, lines in _wanted(events).items():
        if _send(user, lines):
            sent += 1
            for event in lines:
                event.mailed_to.append(user.pk)
        else:
            missed |= {event.pk for event in lines}
    for event in events:
        _note(event, claim, now, is_missed=event.pk in missed)
    return sent


def _claim(now: datetime) -> str:
    """Take what is due, so that two callers do not mail it both; return the name of the claim."""
    claim = secrets.token_hex(8)
    due = AlertEvent.objects.filter(mailed_at=None).filter(
        Q(mail_after=None) | Q(mail_after__lte=now)
    )
    with transaction.atomic():
        free = due.order_by("id").select_for_update(skip_locked=True)
        mine = list(free.values_list("pk", flat=True)[:_AT_ONCE])
        due.filter(pk__in=mine).update(
            mail_claim=claim, mail_after=now + _CLAIMED, num_mail_tries=F("num_mail_tries") + 1
        )
    return claim


def _wanted(events: Sequence[AlertEvent]) -> dict[User, list[AlertEvent]]:
    """Return who is to be told what, the oldest first, without what they were told already."""
    wanted: dict[User, list[AlertEvent]] = defaultdict(list)
    runs = {event.alert.run_id for event in events}
    for mail in AlertMail.objects.select_related("user", "run"):
        user = mail.user
        is_meant = mail.run_id in runs and user.email and not user.is_banned
        if is_meant and alert_may_handle(user, mail.run):
            wanted[user] += [
                e for e in events if e.alert.run_id == mail.run_id and user.pk not in e.mailed_to
            ]
    return {user: sorted(lines, key=lambda e: e.pk) for user, lines in wanted.items() if lines}


def _note(event: AlertEvent, claim: str, now: datetime, *, is_missed: bool) -> None:
    """Write down what became of one event, unless the claim is another's by now."""
    is_last = event.num_mail_tries > len(RETRY)
    if is_missed and is_last:
        logger.error("alert event %d was not mailed to everybody: given up", event.pk)
    AlertEvent.objects.filter(pk=event.pk, mail_claim=claim).update(
        mailed_to=event.mailed_to,
        mailed_at=None if is_missed and not is_last else now,
        mail_after=now + RETRY[event.num_mail_tries - 1] if is_missed and not is_last else None,
        mail_claim="",
    )


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
