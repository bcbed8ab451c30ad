"""Short jobs about runs. Schedule: ``configs_resign_task`` once a day."""

from celery import shared_task
from django.utils import timezone

from web.runs.services import configs_resign


@shared_task
def configs_resign_task() -> None:
    """Sign configs again before they expire."""
    configs_resign(timezone.now())
