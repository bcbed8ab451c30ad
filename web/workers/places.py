"""What is promised to managed workers on a node, and what it has room for."""

from datetime import datetime

from django.db.models import Count, Sum

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.workers.models import ManagedWorker, WorkerNode, node_here
from web.workers.nodes import is_away, limits_of
from web.workers.room import Use, room_refusal


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
