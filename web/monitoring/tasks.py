"""Short jobs about what was seen.

Schedule: ``live_states_refresh_task`` every 10 s, ``points_rollup_task`` every minute,
``points_prune_task`` every hour.
"""

from celery import shared_task
from django.utils import timezone

from web.monitoring.retention import points_prune, points_rollup
from web.monitoring.services import live_states_refresh


@shared_task
def live_states_refresh_task() -> None:
    """Publish states that changed because nothing was heard."""
    live_states_refresh(timezone.now())


@shared_task
def points_rollup_task() -> None:
    """Thin out complete minutes and hours."""
    points_rollup(timezone.now())


@shared_task
def points_prune_task() -> None:
    """Forget what is old and thinned out."""
    points_prune(timezone.now())
