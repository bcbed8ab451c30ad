"""Keeps live states true when no snapshot comes: changes by organisers, silence, the end."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.protocol.states import Role, RunState
from web.core.events import live_state_write
from web.monitoring.evidence import swarm_is_empty
from web.monitoring.feed import EventLine
from web.monitoring.live import live_stored, live_write, run_lock
from web.monitoring.models import RunSwarm
from web.runs.models import Run
from web.runs.services import run_complete

FINISH_WITHIN = timedelta(minutes=3)
"""A finishing run is over after this, also when trainers do not leave."""
_WATCHED = (RunState.OPEN, RunState.PAUSED, RunState.FINISHING)
logger = logging.getLogger(__name__)


@transaction.atomic
def run_changed_announce(run: Run, kind: str, text: str, **signal: Any) -> None:
    """Receiver of ``run_changed``: a line in the feed, and the live state anew."""
    row, swarm = run_lock(run)
    live_write(row, swarm, now=timezone.now(), events=[EventLine(kind, text)])


def live_states_refresh(now: datetime) -> int:
    """Publish what changed by the mere passing of time; return how many runs changed."""
    changed = 0
    for run in Run.objects.filter(state__in=_WATCHED):
        with transaction.atomic():
            row, swarm = run_lock(run)
            changed += live_write(row, swarm, now=now)
            run_settle(row, swarm, now)
    return changed


def run_settle(run: Run, swarm: RunSwarm, now: datetime) -> None:
    """Complete a finishing run once its trainers have left or their time is over.

    The caller holds the lock of the run.
    """
    if run.state != RunState.FINISHING:
        return
    _, peers = live_stored(swarm)
    is_late = now - run.state_changed_at > FINISH_WITHIN
    if is_late or swarm_is_empty(
        peer.state for peer in peers.values() if peer.role is not Role.COORDINATOR
    ):
        run_complete(run, run.state_reason.partition(": ")[2])
        logger.info("run %s is finished", run.slug)


def live_state_rebuild(run: Run, now: datetime) -> None:
    """Put a run's live state from the database into Redis again."""
    with transaction.atomic():
        row, swarm = run_lock(run)
        live_write(row, swarm, now=now)
        state = dict(swarm.live)
    live_state_write(run.slug, state)
