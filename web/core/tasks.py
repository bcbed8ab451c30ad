"""Celery tasks that belong to no domain."""

from celery import shared_task

from web.core.pulse import PULSE_CELERY, pulse_write


@shared_task
def pulse_task() -> None:
    """Show that beat schedules and a celery worker works."""
    pulse_write(PULSE_CELERY)
