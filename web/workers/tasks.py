"""Short celery tasks; the processes they start live in sessions of their own.

Each node has a queue of its own, and each task here is for one node: another one leaves it alone.
"""

import logging

from celery import shared_task
from django.utils import timezone

from web.workers.evaluations import evaluations_look
from web.workers.logs import log_share
from web.workers.models import ManagedWorker
from web.workers.nodes import NodeTaken, node_beat
from web.workers.removal import strays_end
from web.workers.services import managed_worker_reconcile, managed_workers_reconcile
from web.workers.site_database import database_tell

logger = logging.getLogger(__name__)


@shared_task
def node_look_task(is_home: bool) -> None:
    """Say that this node is alive, and look after its processes (every few seconds)."""
    now = timezone.now()
    try:
        node = node_beat(now, is_home=is_home)
    except NodeTaken as error:
        logger.error("this node does nothing: %s", error)
        return
    if is_home:
        database_tell()
    if node.started_at == now:  # it is new, or was away
        strays_end()
    managed_workers_reconcile()
    evaluations_look(timezone.now())


@shared_task
def evaluations_look_task() -> None:
    """Start an evaluation that somebody asked for now instead of at the next look."""
    evaluations_look(timezone.now())


@shared_task
def managed_worker_reconcile_task(worker_id: int) -> None:
    """Start or stop one managed worker now instead of at the next look."""
    worker = _worker(worker_id)
    if worker is not None:
        managed_worker_reconcile(worker)


@shared_task
def managed_worker_log_task(worker_id: int) -> None:
    """Put the end of a log of this node where the desk finds it."""
    worker = _worker(worker_id)
    if worker is not None:
        log_share(worker)


def _worker(worker_id: int) -> ManagedWorker | None:
    return ManagedWorker.objects.select_related("run").filter(pk=worker_id).first()
