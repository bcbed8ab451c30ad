"""Today's machines and how far a config would suit them: what the check of a draft is told."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Max, QuerySet

from training.protocol.config import RunConfig
from training.protocol.states import LiveState, Role, RunState
from training.protocol.versions import is_version_at_least
from web.monitoring.dial import addresses_dial
from web.monitoring.live import live_now
from web.monitoring.live_kept import lives_read
from web.monitoring.models import Peer
from web.runs.catalogue import TaskInfo, params_default, tasks_allowed
from web.runs.findings import Fleet, Situation
from web.runs.lint import size_of
from web.runs.model_size import ModelSize
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import bootstrap_addresses, config_newest

ACTIVE = timedelta(days=1)
MAX_DEVICES = 5000
MAX_RUNS = 50


def situation_of(run: Run, config: RunConfig, now: datetime) -> Situation:
    """Return everything that the check of ``config`` looks at. Dials the swarm: up to 2.5 s."""
    newest = config_newest(run)
    previous = RunConfig.model_validate(newest.body) if newest else None
    tasks = tasks_allowed()
    live = live_now(run, lives_read([run]).get(run.pk), newest, checkpoint_epoch=None, now=now)
    rate = 0.0 if live.state is LiveState.UNKNOWN else live.samples_per_second
    return Situation(
        now=now,
        state=RunState(run.state),
        epoch=live.epoch,
        previous=previous,
        fleet=_fleet(run, config, now, live.num_peers, rate, tasks),
        dialled=addresses_dial(bootstrap_addresses(run, now=now)),
        tasks=frozenset(tasks),
        size=_size(config, tasks),
        previous_size=_size(previous, tasks),
        lifetime_days=float(settings.CONFIG_LIFETIME_DAYS),
        expires_at=newest.expires_at if newest else None,
    )


def _size(config: RunConfig | None, tasks: dict[str, TaskInfo]) -> ModelSize | None:
    task = tasks.get(config.task.name) if config else None
    return size_of(config, params_default(task.params_schema)) if task else None


def _fleet(
    run: Run,
    config: RunConfig,
    now: datetime,
    num_trainers: int,
    samples_per_second: float,
    tasks: dict[str, TaskInfo],
) -> Fleet:
    active = Peer.objects.filter(heartbeat_at__gte=now - ACTIVE, role=Role.TRAINER)
    rows = _machines(active.filter(run=run))
    is_of_run = bool(rows)
    if not rows:
        rows = _machines(active.filter(run__is_public=True))
    memory = [int(m.get("gpu_memory_bytes") or m.get("memory_bytes") or 0) for m, _ in rows]
    wanted = config.min_trainer_version
    num_site, site_rate = 0, 0.0
    if rows and not is_of_run:
        num_site, site_rate = _site_rate(_size(config, tasks), tasks, now)
    return Fleet(
        num_trainers=num_trainers,
        samples_per_second=samples_per_second,
        num_devices=len(rows),
        memory_bytes=tuple(bytes_ for bytes_ in memory if bytes_ > 0),
        num_outdated=sum(not is_version_at_least(version, wanted) for _, version in rows),
        is_of_run=is_of_run,
        num_site_trainers=num_site,
        site_samples_per_second=site_rate,
    )


def _site_rate(
    size: ModelSize | None, tasks: dict[str, TaskInfo], now: datetime
) -> tuple[int, float]:
    """Return how many train in public runs now, and samples of ``size`` that they would compute.

    Each run's samples count by its model's work; runs whose model's size is unknown are left out.
    """
    if size is None:
        return 0, 0.0
    newest = RunConfigVersion.objects.annotate(newest=Max("run__configs__version"))
    found = newest.filter(version=F("newest"), run__is_public=True, run__state=RunState.OPEN)
    configs = list(found.select_related("run").order_by("-pk")[:MAX_RUNS])
    known, trainers, work = lives_read([c.run for c in configs]), 0, 0.0
    for version in configs:
        run = version.run
        theirs = _size(RunConfig.model_validate(version.body), tasks)
        live = live_now(run, known.get(run.pk), version, checkpoint_epoch=None, now=now)
        if theirs is not None and live.state is not LiveState.UNKNOWN:
            trainers += live.num_peers
            work += live.samples_per_second * theirs.work
    return trainers, work / size.work


def _machines(peers: QuerySet[Peer]) -> list[tuple[dict[str, int], str]]:
    """Return hardware and trainer version of each device, once: of its newest membership."""
    rows = peers.order_by("-heartbeat_at").values_list("device_id", "hardware", "trainer_version")
    found: dict[int, tuple[dict[str, int], str]] = {}
    for device, hardware, version in rows[:MAX_DEVICES]:
        found.setdefault(device, (hardware, version))
    return list(found.values())
