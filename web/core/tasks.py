"""Celery tasks that belong to no domain."""

from celery import shared_task
from django.utils import timezone

from web.core.auditing import audit_check
from web.core.pulse import PULSE_CELERY, pulse_write


@shared_task
def pulse_task() -> None:
    """Show that beat schedules and a celery worker works."""
    pulse_write(PULSE_CELERY)


@shared_task(time_limit=540)
def audit_check_task() -> None:
    """Walk along the audit log's chain."""
    audit_check(timezone.now())
