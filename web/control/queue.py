"""What waits for somebody at the desk: one list, from several providers.

A provider is a function of the runs that the visitor sees and the time; add one to PROVIDERS and
its items appear in the list, in the count beside the link, and behind the filter of their kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from django.db.models import CharField, Model, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils import timezone

from training.protocol.states import RunState, WorkerState
from web.accounts.models import User
from web.alerts.models import Webhook
from web.contributions.grounds import SUSPICION_TEXTS, SuspicionKind
from web.contributions.models import Suspicion
from web.core.auditing import audit_check_newest
from web.monitoring.evidence import COORDINATOR_SILENT_SECONDS
from web.monitoring.live_kept import lives_read
from web.monitoring.models import RunSwarm
from web.runs.models import Checkpoint, Run, RunConfigVersion, RunJoinRequest
from web.workers.models import EvaluationJob, ManagedWorker

MAX_ITEMS = 200
"""Of one provider: whoever has more to do begins with the newest."""
LATE_AFTER = 2.0
"""A checkpoint is missing when so many intervals passed without one."""


class Kind(StrEnum):
    APPROVAL = "approval"
    SUSPICION = "suspicion"
    FAILURE = "failure"


KINDS: Final[Mapping[Kind, str]] = {
    Kind.APPROVAL: "Approvals",
    Kind.SUSPICION: "Suspicions",
    Kind.FAILURE: "Failures",
}


@dataclass(frozen=True)
class QueueItem:
    """One thing to decide or to mend."""

    kind: Kind
    is_urgent: bool
    """The run stands still or loses work meanwhile."""
    at: datetime
    title: str
    text: str
    url: str
    action: str
    """What the link says."""
    run: Run | None = None


_COORDINATOR = ManagedWorker.Kind.COORDINATOR
M = TypeVar("M", bound=Model)
Provider = Callable[[Sequence[Run], datetime], list[QueueItem]]


def suspicion_items(runs: Sequence[Run], now: datetime) -> list[QueueItem]:
    """Return machines whose work waits for a decision."""
    rows = Suspicion.objects.filter(run__in=runs, state=Suspicion.State.OPEN)
    return [
        QueueItem(
            kind=Kind.SUSPICION,
            is_urgent=False,
            at=row.at,
            title=f"{row.device.name} of {row.device.user.username}",
            text=f"{SUSPICION_TEXTS[SuspicionKind(row.kind)].capitalize()}. Its new work waits.",
            url=f"{reverse('control:suspicions', args=[row.run.slug])}#suspicion-{row.pk}",
            action="Decide",
            run=row.run,
        )
        for row in rows.select_related("run", "device__user").order_by("-at")[:MAX_ITEMS]
    ]


def failure_items(runs: Sequence[Run], now: datetime) -> list[QueueItem]:
    """Return managed workers that gave up, evaluations that failed, webhooks that are disabled."""
    known = {run.pk: run for run in runs}
    return [_failure(known[row[1]], row[0], *row[2:]) for row in _failure_rows(runs)]


def approval_items(runs: Sequence[Run], now: datetime) -> list[QueueItem]:
    """Return people who ask to join; nobody has to where everybody may."""
    asking = [run for run in runs if run.join_policy != Run.JoinPolicy.OPEN]
    if not asking:
        return []
    rows = RunJoinRequest.objects.filter(
        run__in=asking, state=RunJoinRequest.State.PENDING, user__banned_at=None
    )
    return [
        QueueItem(
            kind=Kind.APPROVAL,
            is_urgent=False,
            at=row.asked_at,
            title=f"{row.user.username} asks to join",
            text=f"“{row.text}”" if row.text else "They wrote nothing.",
            url=reverse("control:request", args=[row.run.slug, row.user.username]),
            action="Approve or refuse",
            run=row.run,
        )
        for row in rows.select_related("run", "user").order_by("-asked_at")[:MAX_ITEMS]
    ]


def swarm_items(runs: Sequence[Run], now: datetime) -> list[QueueItem]:
    """Return open runs whose coordinator is silent, and those that saved no checkpoint in time."""
    going = [run for run in runs if run.state == RunState.OPEN]
    if not going:
        return []
    swarms = lives_read(going)
    versions = _newest(RunConfigVersion.objects.all(), going, "-version")
    configs = {config.run_id: config for config in versions}
    saved = _newest(Checkpoint.objects.defer("manifest", "files"), going, "-lineage", "-epoch")
    checkpoints = {checkpoint.run_id: checkpoint for checkpoint in saved}
    items = []
    for run in going:
        known, config = swarms.get(run.pk), configs.get(run.pk)
        items += _silence(run, known[0] if known else None, now)
        if known is not None and config is not None:
            epoch = known[1].figures.epoch
            items += _late_checkpoint(run, epoch, config, checkpoints.get(run.pk))
    return items[:MAX_ITEMS]


def audit_items(runs: Sequence[Run], now: datetime) -> list[QueueItem]:
    """Return that the audit log was tampered with; for the site's staff."""
    check = audit_check_newest()
    if check is None or check.broken_seq is None:
        return []
    return [
        QueueItem(
            kind=Kind.FAILURE,
            is_urgent=True,
            at=check.at,
            title="The audit log was tampered with",
            text=f"{check.text.capitalize()}.",
            url=reverse("control:audit"),
            action="Look into it",
        )
    ]


PROVIDERS: Final[tuple[Provider, ...]] = (
    approval_items,
    suspicion_items,
    failure_items,
    swarm_items,
)
STAFF_PROVIDERS: Final[tuple[Provider, ...]] = (audit_items,)


def queue_items(user: User, runs: Sequence[Run], now: datetime | None = None) -> list[QueueItem]:
    """Return everything that waits in these runs, urgent things first, then the newest."""
    at = now or timezone.now()
    providers = (*PROVIDERS, *(STAFF_PROVIDERS if user.is_staff else ()))
    items = [item for provider in providers for item in provider(runs, at)]
    return sorted(items, key=lambda item: (not item.is_urgent, -item.at.timestamp()))


def _failure_rows(runs: Sequence[Run]) -> list[tuple[Any, ...]]:
    """Return (what, run id, when, name, why) of each failure, the newest first: one query."""
    workers = ManagedWorker.objects.filter(
        run__in=runs, state=WorkerState.FAILED, desired=ManagedWorker.Desired.RUNNING
    )
    going = [run for run in runs if run.state != RunState.ARCHIVED]
    ended = EvaluationJob.objects.filter(
        state__in=(EvaluationJob.State.DONE, EvaluationJob.State.FAILED), finished_at__isnull=False
    )
    jobs = _newest(ended, going, "-finished_at", "-pk").filter(state=EvaluationJob.State.FAILED)
    hooks = Webhook.objects.filter(run__in=runs, disabled_at__isnull=False)
    epoch = Cast("epoch", CharField())
    found = workers.order_by().values_list(
        "kind", "run_id", "state_changed_at", "name", "last_error"
    )
    found = found.union(
        jobs.order_by().values_list(Value("evaluation"), "run_id", "finished_at", epoch, "reason"),
        hooks.order_by().values_list(
            Value("webhook"), "run_id", "disabled_at", "url", "disabled_reason"
        ),
        all=True,
    )
    return list(found.order_by("-state_changed_at")[:MAX_ITEMS])


def _failure(run: Run, what: str, at: datetime, name: str, why: str) -> QueueItem:
    """Return the item of one row. A run's newest evaluation counts: a later one takes it away."""
    text, arguments = why[:200], [run.slug]
    match what:
        case "evaluation":
            title = f"The evaluation of epoch {name} failed"
            page, action = "checkpoints", "See checkpoints"
        case "webhook":
            title = f"The webhook to {Webhook(url=name).host} is disabled"
            page, action = "alert_settings", "See webhooks"
        case _:
            title, page, action = f"{name} gave up", "worker", "Look into it"
            text = (why.strip().splitlines() or ["It wrote no error."])[-1][:200]
            arguments.append(name)
    return QueueItem(
        kind=Kind.FAILURE,
        is_urgent=what == _COORDINATOR,
        at=at,
        title=title,
        text=text,
        url=reverse(f"control:{page}", args=arguments),
        action=action,
        run=run,
    )


def _newest(rows: QuerySet[M], runs: Sequence[Run], *order: str) -> QuerySet[M]:
    """Return the first row of each run in this order: bodies of older ones are not read."""
    of_run = rows.filter(run=OuterRef("run")).order_by(*order).values("pk")[:1]
    return rows.filter(run__in=runs, pk=Subquery(of_run))


def _silence(run: Run, swarm: RunSwarm | None, now: datetime) -> list[QueueItem]:
    heard = max(filter(None, (swarm.received_at if swarm else None, run.state_changed_at)))
    if now - heard <= timedelta(seconds=COORDINATOR_SILENT_SECONDS):
        return []
    never = swarm is None or swarm.received_at is None
    return [
        QueueItem(
            kind=Kind.FAILURE,
            is_urgent=True,
            at=heard,
            title="The coordinator never reported" if never else "The coordinator is silent",
            text="Nobody can enter the swarm, and nothing is counted until it is back.",
            url=f"{reverse('control:run', args=[run.slug])}#workers",
            action="See its workers",
            run=run,
        )
    ]


def _late_checkpoint(
    run: Run, epoch: int, config: RunConfigVersion, newest: Checkpoint | None
) -> list[QueueItem]:
    every = int(config.body.get("checkpoint", {}).get("every_epochs", 0))
    start = int((config.body.get("start") or {}).get("epoch", 0))
    is_current = newest is not None and newest.lineage == config.lineage
    last = newest.epoch if newest is not None and is_current else start
    if every <= 0 or epoch - last <= every * LATE_AFTER:
        return []
    at = newest.saved_at if newest is not None and is_current else run.state_changed_at
    return [
        QueueItem(
            kind=Kind.FAILURE,
            is_urgent=True,
            at=at,
            title="No checkpoint for long",
            text=f"The run is at epoch {epoch}; the last saved one is {last}, every {every} "
            "should be.",
            url=f"{reverse('control:run', args=[run.slug])}#checkpoints",
            action="See checkpoints",
            run=run,
        )
    ]
