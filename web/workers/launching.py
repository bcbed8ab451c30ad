"""Several managed workers asked for at once, if their node has room for them."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.lifecycle import OVER
from web.runs.models import Run
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.places import node_lock, room_require
from web.workers.room import Use
from web.workers.services import Placement, managed_worker_create

LIMITS = {ManagedWorker.Kind.TRAINER: 32, ManagedWorker.Kind.AUXILIARY: 16}
"""Of one run on all nodes together."""
COORDINATOR_MEMORY_MB = 2048
"""Of a coordinator that comes with the first peers, where the node's memory is limited. Raise it
when one is ended for taking more, as with very large models."""
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
    node = node_lock(order.placement.node, timezone.now())
    places = [_place(order, kind, node) for _, kind in new]
    wanted = sum((Use(1, p.threads, p.memory_mb or 0) for p in places), Use())
    room_require(node, wanted, is_unbounded=any(p.memory_mb is None for p in places))
    for (name, kind), place in zip(new, places, strict=True):
        managed_worker_create(actor, run, kind, name, place)
    return [name for name, _ in new]


def _place(order: Order, kind: ManagedWorker.Kind, node: WorkerNode | None) -> Placement:
    """Return where one of the order runs: what peers are given does not bound a coordinator.

    Without its coordinator nobody could enter when the trainers' hours are over.
    """
    if kind == order.kind:
        return order.placement
    is_limited = node is not None and node.max_memory_mb is not None
    memory_mb = COORDINATOR_MEMORY_MB if is_limited else None
    return Placement(node=order.placement.node, memory_mb=memory_mb)


def _names(order: Order, workers: list[tuple[str, str]]) -> list[tuple[str, ManagedWorker.Kind]]:
    coordinator = ("coordinator", ManagedWorker.Kind.COORDINATOR)
    has_coordinator = any(kind == ManagedWorker.Kind.COORDINATOR for _, kind in workers)
    if order.kind == ManagedWorker.Kind.COORDINATOR:
        if has_coordinator or order.count != 1:
            raise AppError(
                ErrorCode.BODY_INVALID,
                "A run has one managed coordinator. Stopped, or on a node that is away, it can be "
                "removed first.",
            )
        return [coordinator]
    limit = LIMITS[order.kind]
    if sum(kind == order.kind for _, kind in workers) + order.count > limit:
        raise AppError(
            ErrorCode.BODY_INVALID,
            f"A run has at most {limit} {NOUNS[order.kind]} here: remove stopped ones first.",
        )
    taken = {name for name, _ in workers}
    free = [name for n in range(1, 2 * limit + 2) if (name := f"{order.kind}-{n}") not in taken]
    peers = [(name, ManagedWorker.Kind(order.kind)) for name in free[: order.count]]
    return peers if has_coordinator else [coordinator, *peers]
