"""Short jobs of alerts.

Schedule: ``alerts_check_task`` every 15 s, ``bootstraps_dial_task`` and ``alerts_mail_task`` every
minute, ``webhooks_deliver_task`` every 10 s, ``deliveries_prune_task`` once a day.
"""

from celery import shared_task
from django.utils import timezone

from web.alerts.dial import bootstraps_dial
from web.alerts.mails import alerts_mail
from web.alerts.services import alerts_check
from web.alerts.webhooks import deliveries_due, deliveries_prune, delivery_attempt


@shared_task
def alerts_check_task() -> None:
    """Judge every run and the site."""
    alerts_check(timezone.now())


@shared_task
def bootstraps_dial_task() -> None:
    """Ask whether bootstrap addresses answer."""
    bootstraps_dial(timezone.now())


@shared_task
def alerts_mail_task() -> None:
    """Mail what happened in the last minute."""
    alerts_mail(timezone.now())


@shared_task
def webhook_deliver_task(delivery_id: int) -> None:
    """Try one delivery now instead of at the next round."""
    delivery_attempt(delivery_id, timezone.now())


@shared_task
def webhooks_deliver_task() -> None:
    """Hand out deliveries whose time has come, each as a job of its own."""
    for delivery_id in deliveries_due(timezone.now()):
        webhook_deliver_task.delay(delivery_id)


@shared_task
def deliveries_prune_task() -> None:
    """Forget old entries of the delivery log."""
    deliveries_prune(timezone.now())
