"""Short jobs about runs."""

from celery import shared_task
from django.utils import timezone

from web.runs.services import configs_resign, run_bars_expire


@shared_task
def configs_resign_task() -> None:
    """Sign configs again before they expire."""
    configs_resign(timezone.now())


@shared_task
def bars_expire_task() -> None:
    """Let people and machines in again whose bar was for a time."""
    run_bars_expire(timezone.now())
