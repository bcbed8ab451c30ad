"""Short jobs about runs. The schedule stands in ``web.project.celery``."""

from celery import shared_task
from django.utils import timezone

from web.runs.services import configs_resign, run_bars_expire, runs_resume_due


@shared_task
def configs_resign_task() -> None:
    """Sign configs again before they expire."""
    configs_resign(timezone.now())


@shared_task
def runs_resume_due_task() -> None:
    """Open runs whose pause has come to its end."""
    runs_resume_due(timezone.now())


@shared_task
def bars_expire_task() -> None:
    """Let people and machines in again whose bar was for a time."""
    run_bars_expire(timezone.now())
