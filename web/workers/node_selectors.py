"""Reads of nodes: which are there, what each runs, since when nothing is known of one."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from training.protocol.states import WorkerState
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.nodes import is_away, limits_of, node_queue
from web.workers.room import Use

_SETTLED = (WorkerState.STOPPED, WorkerState.FAILED, WorkerState.REQUESTED)


def nodes_by_name() -> dict[str, WorkerNode]:
    """Return all nodes by their names."""
    return {node.name: node for node in WorkerNode.objects.all()}


def node_queues() -> list[str]:
    """Return the celery queues of all nodes, also of those that are away."""
    return [node_queue(name) for name in WorkerNode.objects.values_list("name", flat=True)]


def nodes_present(now: datetime) -> list[WorkerNode]:
    """Return the nodes on which something can be started now."""
    return [node for node in WorkerNode.objects.all() if not is_away(node, now)]


def unknown_since(worker: ManagedWorker, node: WorkerNode | None, now: datetime) -> datetime | None:
    """Return since when nothing is known of a managed worker; None: its state is what it says.

    A process that is on no record cannot have changed; a node that said good-bye stopped its own.
    """
    if node is None or not is_away(node, now) or worker.state in _SETTLED:
        return None
    return node.left_at or node.seen_at


def node_rows(now: datetime) -> list[dict[str, Any]]:
    """Return each node with its age, limits, and what it runs (two queries)."""
    workers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    used: dict[str, Use] = defaultdict(Use)
    nodes = nodes_by_name()
    for worker in ManagedWorker.objects.select_related("run").order_by("run_id", "kind", "id"):
        is_wanted = worker.desired != ManagedWorker.Desired.STOPPED
        if is_wanted:
            used[worker.node] += Use(1, worker.threads, worker.memory_mb or 0)
        if is_wanted or worker.pid is not None:
            since = unknown_since(worker, nodes.get(worker.node), now)
            workers[worker.node].append({"worker": worker, "unknown_since": since})
    return [
        {
            "node": node,
            "queue": node_queue(node.name),
            "is_away": is_away(node, now),
            "limits": limits_of(node),
            "used": used[node.name],
            "workers": workers[node.name],
        }
        for node in nodes.values()
    ]
