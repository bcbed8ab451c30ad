"""Short celery tasks; the processes they start live in sessions of their own."""

from celery import shared_task

from web.workers.models import ManagedWorker
from web.workers.services import managed_worker_reconcile, managed_workers_reconcile


@shared_task
def managed_worker_reconcile_task(worker_id: int) -> None:
    """Start or stop one managed worker now instead of at the next round."""
    worker = ManagedWorker.objects.select_related("run").filter(pk=worker_id).first()
    if worker is not None:
        managed_worker_reconcile(worker)


@shared_task
def managed_workers_reconcile_task() -> None:
    """Compare wanted and observed processes (every few seconds, by beat)."""
    managed_workers_reconcile()
