"""What is promised to managed workers on a node, and what it has room for."""

from datetime import datetime

from django.db.models import Count, Sum

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.runs.lifecycle import OVER
from web.workers.models import ManagedWorker, WorkerNode, node_here
from web.workers.nodes import is_away, limits_of
from web.workers.room import Use, room_refusal


def node_use(name: str) -> Use:
    """Return what is promised to the managed workers that are wanted on a node."""
    wanted = ManagedWorker.objects.filter(node=name).exclude(desired=ManagedWorker.Desired.STOPPED)
    sums = wanted.aggregate(number=Count("pk"), threads=Sum("threads"), memory=Sum("memory_mb"))
    return Use(sums["number"], sums["threads"] or 0, sums["memory"] or 0)


def node_lock(name: str, now: datetime) -> WorkerNode | None:
    """Lock the row of a node on which something can be started; None: the site's own, unheard.

    Raises:
        AppError: BODY_INVALID, with the reason and what to do.
    """
    node = WorkerNode.objects.select_for_update().filter(name=name).first()
    if node is None:
        if name == node_here():
            return None  # the site's own node has not said its first word yet
        raise AppError(ErrorCode.BODY_INVALID, f"There is no node {name}.")
    if is_away(node, now):
        raise AppError(
            ErrorCode.BODY_INVALID,
            f"Node {name} is away: nothing can be started. Start the node again, or launch on "
            "another one.",
        )
    return node


def room_require(node: WorkerNode | None, wanted: Use, *, is_unbounded: bool) -> None:
    """Refuse what a node, whose row is locked, has no room for.

    Raises:
        AppError: BODY_INVALID, with the reason.
    """
    if node is None:
        return
    refusal = room_refusal(limits_of(node), node_use(node.name), wanted, is_unbounded=is_unbounded)
    if refusal:
        raise AppError(ErrorCode.BODY_INVALID, f"Node {node.name} has no room: {refusal}.")


def start_require(worker: ManagedWorker, now: datetime) -> None:
    """Refuse a start on a node that is away or has no room; what is wanted has its room already.

    Call it in the transaction that makes the worker wanted. The node's row is locked first.

    Raises:
        AppError: BODY_INVALID, with the reason; RUN_OVER.
    """
    if worker.run.state in OVER:
        raise AppError(ErrorCode.RUN_OVER)
    node = node_lock(worker.node, now)
    row = ManagedWorker.objects.select_for_update().get(pk=worker.pk)
    if row.desired == ManagedWorker.Desired.STOPPED:
        wanted = Use(1, row.threads, row.memory_mb or 0)
        room_require(node, wanted, is_unbounded=row.memory_mb is None)
