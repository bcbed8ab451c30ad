"""Notes about a managed worker: its state, and its events for the organiser's eyes."""

import logging

from django.utils import timezone

from training.protocol.states import WorkerState
from web.workers.models import ManagedWorker, WorkerEvent

logger = logging.getLogger(__name__)
_KEPT_EVENTS = 200
_WITH_PROCESS = (
    WorkerState.STARTING,
    WorkerState.RUNNING,
    WorkerState.TRAINING,
    WorkerState.STOPPING,
)


def state_note(worker: ManagedWorker, state: WorkerState, text: str, **fields: object) -> bool:
    """Move a managed worker on from the state it was read in.

    Returns:
        False when somebody else moved it meanwhile; then nothing is changed.
    """
    if state not in _WITH_PROCESS:
        fields |= {"pid": None, "process_started_at": None}
    moved = ManagedWorker.objects.filter(pk=worker.pk, state=worker.state).update(
        state=state, state_changed_at=timezone.now(), **fields
    )
    if moved and state != worker.state:
        event_note(worker, state, text)
        logger.info("run %s: %s is %s: %s", worker.run.slug, worker.name, state, text)
        worker.state = state
    return bool(moved)


def event_note(worker: ManagedWorker, kind: str, text: str) -> None:
    """Add an event; only the newest are kept."""
    WorkerEvent.objects.create(worker=worker, kind=kind, text=text[:500])
    old = worker.events.order_by("-id").values_list("pk", flat=True)[_KEPT_EVENTS:]
    WorkerEvent.objects.filter(pk__in=list(old)).delete()
