"""Several managed workers asked for at once, if their node has room for them."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Count, Sum
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run
from web.workers.models import ManagedWorker, WorkerNode, node_here
from web.workers.nodes import is_away, limits_of
from web.workers.room import Use, room_refusal
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


def node_use(name: str) -> Use:
    """Return what is promised to the managed workers that are wanted on a node."""
    wanted = ManagedWorker.objects.filter(node=name).exclude(desired=ManagedWorker.Desired.STOPPED)
    sums = wanted.aggregate(number=Count("pk"), threads=Sum("threads"), memory=Sum("memory_mb"))
    return Use(sums["number"], sums["threads"] or 0, sums["memory"] or 0)


def room_require(name: str, wanted: Use, *, is_unbounded: bool, now: datetime) -> None:
    """Refuse what a node has no room for, or a node that is not there. Locks the node's row.

    Raises:
        AppError: BODY_INVALID, with the reason.
    """
    node = WorkerNode.objects.select_for_update().filter(name=name).first()
    if node is None:
        if name == node_here():
            return  # the site's own node has not said its first word yet
        raise AppError(ErrorCode.BODY_INVALID, f"There is no node {name}.")
    if is_away(node, now):
        raise AppError(ErrorCode.BODY_INVALID, f"Node {name} is away: nothing can be started.")
    refusal = room_refusal(limits_of(node), node_use(name), wanted, is_unbounded=is_unbounded)
    if refusal:
        raise AppError(ErrorCode.BODY_INVALID, f"Node {name} has no room: {refusal}.")


@transaction.atomic
def managed_workers_launch(actor: User, run: Run, order: Order) -> list[str]:
    """Ask for managed workers; the coordinator comes with the first peer. Returns their names.

    Raises:
        AppError: BODY_INVALID (no room, no such node, too many, a second coordinator).
    """
    Run.objects.select_for_update().get(pk=run.pk)  # two clicks must not choose the same names
    workers = list(run.managed_workers.values_list("name", "kind"))
    new = _names(order, workers)
    place = order.placement
    wanted = Use(len(new), len(new) * place.threads, len(new) * (place.memory_mb or 0))
    room_require(place.node, wanted, is_unbounded=place.memory_mb is None, now=timezone.now())
    for name, kind in new:
        managed_worker_create(actor, run, kind, name, place)
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
