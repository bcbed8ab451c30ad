"""Short jobs about accounts."""

from celery import shared_task
from django.utils import timezone

from web.accounts.services import users_unban_expired


@shared_task
def bans_expire_task() -> None:
    """Lift suspensions that were for a time."""
    users_unban_expired(timezone.now())
