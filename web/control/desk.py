"""What the desk's pages show."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Lower
from django.utils import timezone

from training.protocol.states import RunState, WorkerState
from web.accounts.models import User
from web.alerts.selectors import alerts_open
from web.control.access import DeskRequest
from web.control.audit import audit_rows
from web.control.moves import Move, moves_of
from web.control.suspicions import suspicions_open
from web.core.auditing import AuditQuery, audit_search
from web.monitoring.models import Peer
from web.monitoring.selectors import live_state, revocations_spread, summaries_of
from web.runs.config_diff import config_diff
from web.runs.lifecycle import OVER
from web.runs.models import Run, RunConfigVersion, RunMember
from web.runs.request_selectors import join_requests_open
from web.runs.roles import Right
from web.runs.saved_files import saved_states
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.node_selectors import nodes_by_name, unknown_since
from web.workers.nodes import is_away
from web.workers.removal import is_removable
from web.workers.selectors import managed_workers

_SHOWN = 20
_PEERS = 200
_NEWEST_PEERS = 12
_GOING = (WorkerState.STARTING, WorkerState.RUNNING, WorkerState.TRAINING)


def desk_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the runs with their live figures."""
    rows = zip(runs, summaries_of(runs, timezone.now()), strict=True)
    return [
        {"run": run, "live": live, "moves": _moves_in_list(run), "may_draft": run.state not in OVER}
        for run, live in rows
    ]


def runs_with_parts(runs: QuerySet[Run], user: User) -> QuerySet[Run]:
    """Return the runs with ``is_mine``, whether the account may change them, and their drafts."""
    member = RunMember.objects.filter(run=OuterRef("pk"), user=user, part=RunMember.Part.ORGANISER)
    is_mine = Q(Exists(member)) | Q(organiser=user) | Q(Value(user.is_superuser))
    return runs.select_related("draft__edited_by").annotate(is_mine=is_mine)


def _moves_in_list(run: Run) -> list[Move]:
    """Return the moves that can be taken back: the others belong on the run's own page."""
    if not getattr(run, "is_mine", False):
        return []
    return [move for move in moves_of(RunState(run.state)) if not move.is_final]


def desk_context(request: DeskRequest, run: Run) -> dict[str, Any]:
    """Return everything about one run that its organiser wants to see."""
    nodes, now = nodes_by_name(), timezone.now()
    may_move = Right.ORGANISE in request.rights
    return {
        "run": run,
        "live": live_state(run, request.user),
        "moves": moves_of(RunState(run.state)) if may_move else [],
        "workers": worker_rows(run, nodes, now),
        "nodes": [node for node in nodes.values() if not is_away(node, now)],
        "configs": config_rows(run),
        "draft": getattr(run, "draft", None),
        "may_draft": may_move and run.state not in OVER,
        "checkpoints": saved_states(run.slug, run.checkpoints.defer("manifest")[:_SHOWN]),
        "peers": peer_rows(run),
        "num_peers": run.peers.count(),
        "audit": audit_rows(audit_search(AuditQuery(run=run.slug))[:_SHOWN]),
        "num_suspicions": suspicions_open(run),
        "num_requests": join_requests_open(run),
        "alerts": list(alerts_open([run], with_site=False)[:_SHOWN]),
        **revocations_context(request, run),
    }


def revocations_context(request: DeskRequest, run: Run) -> dict[str, Any]:
    """Return the revocation list, who has not seen it yet, and who is barred from the run."""
    bars = list(run.bars.select_related("user", "barred_by")[:_PEERS])
    return {
        "spread": revocations_spread(run),
        "bars": bars,
        "barred_ids": {bar.user_id for bar in bars},
        "device_bars": list(run.device_bars.select_related("device__user", "barred_by")[:_PEERS]),
        "rights": request.rights,
        "is_organiser": Right.ORGANISE in request.rights,
    }


def worker_rows(run: Run, nodes: Mapping[str, WorkerNode], now: datetime) -> list[dict[str, Any]]:
    """Return the run's managed workers."""
    return [worker_row(worker, nodes, now) for worker in managed_workers(run)]


def worker_row(
    worker: ManagedWorker, nodes: Mapping[str, WorkerNode], now: datetime
) -> dict[str, Any]:
    """Return a managed worker, whether it can be stopped or started, and what its node says."""
    node = nodes.get(worker.node)
    is_wanted = worker.desired != ManagedWorker.Desired.STOPPED
    has_failed = worker.state == WorkerState.FAILED
    return {
        "worker": worker,
        "can_stop": is_wanted and not has_failed,
        "can_start": not is_wanted or has_failed,
        "can_remove": is_removable(worker, node, now),
        "can_restart": worker.desired == ManagedWorker.Desired.RUNNING and worker.state in _GOING,
        "is_leaving": worker.desired != ManagedWorker.Desired.RUNNING and worker.state in _GOING,
        "node": node,
        "unknown_since": unknown_since(worker, node, now),
    }


def config_rows(run: Run) -> list[dict[str, Any]]:
    """Return the newest config versions, each with what it changed."""
    versions = list(run.configs.select_related("published_by").order_by("-version")[: _SHOWN + 1])
    rows = []
    for index, version in enumerate(versions[:_SHOWN]):
        previous = versions[index + 1] if index + 1 < len(versions) else None
        rows.append({"version": version, "diff": _diff(previous, version)})
    return rows


def peer_rows(run: Run) -> QuerySet[Peer]:
    """Return the devices that joined, those seen last first."""
    peers = Peer.objects.filter(run=run).select_related("device__user")
    return peers.order_by("-heartbeat_at", "-id")[:_NEWEST_PEERS]


def people_search(text: str) -> QuerySet[User]:
    """Return accounts of people whose name or address has the text in it, with num_devices."""
    people = User.objects.filter(is_service=False).annotate(
        num_devices=Count("devices", filter=Q(devices__revoked_at=None))
    )
    if text:
        people = people.filter(Q(username__icontains=text) | Q(email__icontains=text))
    return people.order_by(Lower("username"))


def _diff(previous: RunConfigVersion | None, version: RunConfigVersion) -> list[dict[str, Any]]:
    return config_diff(previous.body, version.body) if previous else []
