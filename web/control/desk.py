"""What the desk's pages show."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone

from training.protocol.states import RunState, WorkerState
from web.accounts.models import User
from web.alerts.selectors import alerts_open
from web.control.moves import moves_of
from web.control.suspicions import suspicions_open
from web.core.models import AuditEntry
from web.monitoring.models import Peer
from web.monitoring.selectors import live_state, revocations_spread, summaries_of
from web.runs.config_diff import config_diff
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import run_is_organised_by
from web.workers.models import ManagedWorker
from web.workers.selectors import managed_workers

_SHOWN = 20
_PEERS = 200
_GOING = (WorkerState.STARTING, WorkerState.RUNNING, WorkerState.TRAINING)


def desk_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the runs with their live figures."""
    rows = zip(runs, summaries_of(runs, timezone.now()), strict=True)
    return [{"run": run, "live": live} for run, live in rows]


def desk_context(user: User, run: Run) -> dict[str, Any]:
    """Return everything about one run that its organiser wants to see."""
    may_move = run_is_organised_by(user, run)
    return {
        "run": run,
        "live": live_state(run, user),
        "moves": moves_of(RunState(run.state)) if may_move else [],
        "workers": worker_rows(run),
        "configs": config_rows(run),
        "checkpoints": list(run.checkpoints.all()[:_SHOWN]),
        "peers": peer_rows(run),
        "audit": list(audit_of_run(run)[:_SHOWN]),
        "num_suspicions": suspicions_open(run),
        "alerts": list(alerts_open([run], with_site=False)[:_SHOWN]),
        **revocations_context(user, run),
    }


def revocations_context(user: User, run: Run) -> dict[str, Any]:
    """Return the revocation list, who has not seen it yet, and who is barred from the run."""
    bars = list(run.bars.select_related("user", "barred_by")[:_PEERS])
    return {
        "spread": revocations_spread(run),
        "bars": bars,
        "barred_ids": {bar.user_id for bar in bars},
        "is_organiser": run_is_organised_by(user, run),
    }


def worker_rows(run: Run) -> list[dict[str, Any]]:
    """Return the run's managed workers."""
    return [worker_row(worker) for worker in managed_workers(run)]


def worker_row(worker: ManagedWorker) -> dict[str, Any]:
    """Return a managed worker and whether it can be stopped or started."""
    is_wanted = worker.desired == ManagedWorker.Desired.RUNNING
    has_failed = worker.state == WorkerState.FAILED
    return {
        "worker": worker,
        "can_stop": is_wanted and not has_failed,
        "can_start": not is_wanted or has_failed,
        "is_leaving": not is_wanted and worker.state in _GOING,
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
    return peers.order_by("-heartbeat_at", "-id")[:_PEERS]


def audit_of_run(run: Run) -> QuerySet[AuditEntry]:
    """Return what was done to a run, its workers and its peers."""
    return AuditEntry.objects.filter(Q(target=run.slug) | Q(target__startswith=f"{run.slug}/"))


def audit_search(text: str) -> QuerySet[AuditEntry]:
    """Return acts whose code, target or actor has the text in it."""
    entries = AuditEntry.objects.all()
    if text:
        entries = entries.filter(
            Q(code__icontains=text) | Q(target__icontains=text) | Q(actor_name__icontains=text)
        )
    return entries


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
