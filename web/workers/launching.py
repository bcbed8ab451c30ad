"""Several managed workers asked for at once, if their node has room for them."""

from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.lifecycle import OVER
from web.runs.models import Run
from web.workers.models import ManagedWorker
from web.workers.places import room_require
from web.workers.room import Use
from web.workers.services import Placement, managed_worker_create

LIMITS = {ManagedWorker.Kind.TRAINER: 32, ManagedWorker.Kind.AUXILIARY: 16}
"""Of one run on all nodes together."""
NOUNS = {ManagedWorker.Kind.TRAINER: "trainers", ManagedWorker.Kind.AUXILIARY: "auxiliary peers"}


@dataclass(frozen=True)
class Order:
    """What somebody wants to be launched."""

    kind: ManagedWorker.Kind
    count: int
    placement: Placement


@transaction.atomic
def managed_workers_launch(actor: User, run: Run, order: Order) -> list[str]:
    """Ask for managed workers; the coordinator comes with the first peer. Returns their names.

    Raises:
        AppError: BODY_INVALID (no room, no such node, too many, a second coordinator), RUN_OVER.
    """
    run = Run.objects.select_for_update().get(pk=run.pk)  # two clicks: not the same names
    workers = list(run.managed_workers.values_list("name", "kind"))
    new = _names(order, workers)
    if run.state in OVER:
        raise AppError(ErrorCode.RUN_OVER)
    place = order.placement
    wanted = Use(len(new), len(new) * place.threads, len(new) * (place.memory_mb or 0))
    room_require(place.node, wanted, is_unbounded=place.memory_mb is None, now=timezone.now())
    for name, kind in new:
        # Without its coordinator nobody could enter when the trainers' hours are over.
        comes_along = kind is ManagedWorker.Kind.COORDINATOR is not order.kind
        placed = replace(place, device="", hours=None) if comes_along else place
        managed_worker_create(actor, run, kind, name, placed)
    return [name for name, _ in new]


def _names(order: Order, workers: list[tuple[str, str]]) -> list[tuple[str, ManagedWorker.Kind]]:
    coordinator = ("coordinator", ManagedWorker.Kind.COORDINATOR)
    has_coordinator = any(kind == ManagedWorker.Kind.COORDINATOR for _, kind in workers)
    if order.kind == ManagedWorker.Kind.COORDINATOR:
        if has_coordinator or order.count != 1:
            raise AppError(ErrorCode.BODY_INVALID, "A run has one managed coordinator.")
        return [coordinator]
    limit = LIMITS[order.kind]
    if sum(kind == order.kind for _, kind in workers) + order.count > limit:
        raise AppError(
            ErrorCode.BODY_INVALID, f"A run has at most {limit} {NOUNS[order.kind]} here."
        )
    taken = {name for name, _ in workers}
    free = [name for n in range(1, 2 * limit + 2) if (name := f"{order.kind}-{n}") not in taken]
    peers = [(name, ManagedWorker.Kind(order.kind)) for name in free[: order.count]]
    return peers if has_coordinator else [coordinator, *peers]
