"""Reads of monitoring. Whatever depends on time is worked out when it is read."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.utils import timezone

from training.protocol.api import RunSummary
from training.protocol.errors import ErrorCode
from training.protocol.states import Role
from web.accounts.credentials import Credential
from web.accounts.models import Device
from web.core.errors import AppError
from web.monitoring.live import live_now
from web.monitoring.live_kept import StoredLive, lives_read
from web.monitoring.models import Peer, RunEvent, RunSwarm
from web.monitoring.series import run_series
from web.monitoring.spread import revocations_spread
from web.monitoring.why import why_chain
from web.monitoring.why_links import Link
from web.runs.models import Checkpoint, Run, RunConfigVersion
from web.runs.selectors import Viewer, checkpoint_latest, config_newest, runs_visible

__all__ = [
    "Link",
    "coordinator_device",
    "live_state",
    "live_state_of",
    "peer_events",
    "peer_visible",
    "revocations_spread",
    "run_countries",
    "run_events",
    "run_series",
    "runs_summaries",
    "summaries_of",
    "why_chain",
]

FEWEST_PEOPLE = 3
"""A country that fewer people share is not named."""
COUNTRY_WITHIN = timedelta(days=7)


def live_state(run: Run, viewer: Viewer = None, *, now: datetime | None = None) -> dict[str, Any]:
    """Return a LiveRun body as it has to be read now; a silent coordinator makes it unknown.

    ``viewer`` must have passed :func:`web.runs.selectors.run_get_visible`; the body holds
    nothing that is not public.
    """
    # The number has to be read before the state: too low a number costs one message more, too
    # high a one would hide a change.
    run = Run.objects.get(pk=run.pk)
    checkpoint = checkpoint_latest(run)
    return live_state_of(run, config_newest(run), checkpoint, now=now or timezone.now())


def live_state_of(
    run: Run, config: RunConfigVersion | None, checkpoint: Checkpoint | None, *, now: datetime
) -> dict[str, Any]:
    """Return the same as :func:`live_state`, of rows that were read just now.

    One query. The peers' rows are shared: they must not be changed.
    """
    known = lives_read([run]).get(run.pk)
    epoch = checkpoint.epoch if checkpoint else None
    live = live_now(run, known, config, checkpoint_epoch=epoch, now=now)
    peers = dict(known[1].rows) if known else {}
    return live.model_dump(mode="json", exclude={"peers"}) | {"peers": peers}


def runs_summaries(viewer: Viewer, *, now: datetime | None = None) -> list[RunSummary]:
    """Return the runs that the viewer may list, with their live figures, in three queries."""
    return summaries_of(list(runs_visible(viewer)), now or timezone.now())


def summaries_of(runs: Sequence[Run], now: datetime) -> list[RunSummary]:
    """Return the rows of these runs, in two queries."""
    ids = [run.pk for run in runs]
    swarms = lives_read(runs)
    newest = RunConfigVersion.objects.filter(run_id__in=ids).order_by("version")
    configs = {version.run_id: version for version in newest}
    return [_summary(r, swarms.get(r.pk), configs.get(r.pk), now=now) for r in runs]


def _summary(
    run: Run,
    known: tuple[RunSwarm, StoredLive] | None,
    config: RunConfigVersion | None,
    *,
    now: datetime,
) -> RunSummary:
    live = live_now(run, known, config, checkpoint_epoch=None, now=now)
    task: Mapping[str, Any] = config.body["task"] if config else {}
    return RunSummary(
        slug=run.slug,
        title=run.title,
        summary=run.summary,
        task=str(task.get("name", "")),
        **{
            name: getattr(live, name)
            for name in (
                "state",
                "reason",
                "config_version",
                "target_batch_size",
                "epoch",
                "num_peers",
                "samples_total",
                "samples_per_second",
                "loss",
                "as_of",
            )
        },
    )


def run_events(run: Run, limit: int = 50, *, before: int | None = None) -> list[RunEvent]:
    """Return the newest lines of the feed; with ``before``, those with lower numbers."""
    events: QuerySet[RunEvent] = run.events.order_by("-seq")
    if before is not None:
        events = events.filter(seq__lt=before)
    return list(events[:limit])


def peer_visible(run: Run, key: str) -> Peer | None:
    """Return a member of the run by its public id, with its account; never the coordinator."""
    peers = Peer.objects.filter(run=run, public_id=key).exclude(role=Role.COORDINATOR)
    return peers.select_related("device__user").first()


def peer_events(run: Run, key: str, limit: int = 20) -> list[RunEvent]:
    """Return the newest lines of the feed that are about one peer alone."""
    return list(run.events.filter(peer=key).order_by("-seq")[:limit])


def run_countries(run: Run, now: datetime) -> list[tuple[str, int]]:
    """Return codes of countries and how many people of the run chose each, most people first.

    Only people who took part within a week, and only countries that at least FEWEST_PEOPLE of
    them share: fewer could be recognised. Nothing is said of the others, not even how many.
    """
    people = Peer.objects.filter(
        run=run, role=Role.TRAINER, seen_at__gte=now - COUNTRY_WITHIN,
        device__user__is_service=False, device__user__banned_at=None,
    ).exclude(device__user__country="")  # fmt: skip
    counts = (
        people.order_by()
        .values("device__user__country")
        .annotate(people=Count("device__user", distinct=True))
    )
    rows = counts.filter(people__gte=FEWEST_PEOPLE).order_by("-people", "device__user__country")
    return list(rows.values_list("device__user__country", "people"))


def coordinator_device(credential: Credential, run: Run) -> Device:
    """Return the caller's device when it joined the run as its coordinator.

    Raises:
        AppError: FORBIDDEN or NOT_JOINED.
    """
    if "coordinator" not in credential.scopes:
        raise AppError(ErrorCode.FORBIDDEN, "This token is not a coordinator's.")
    if credential.device is None:
        raise AppError(ErrorCode.NOT_JOINED)
    peers = Peer.objects.filter(run=run, device=credential.device, role=Role.COORDINATOR)
    if not peers.exists():
        raise AppError(ErrorCode.NOT_JOINED)
    return credential.device
