"""Figures for Prometheus: public runs, queues, alerts and this process; nothing about people."""

from collections import Counter
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from training.protocol.states import PeerState, RunState
from web.alerts.selectors import alerts_by_kind
from web.contributions.models import LedgerCheck
from web.core.figures import PROCESS
from web.core.pulse import PULSE_CELERY, pulse_age
from web.core.services_health import queue_lengths
from web.monitoring.models import RunSwarm
from web.runs.models import Run
from web.workers.node_selectors import node_queues

_FIGURES = {
    "epoch": "Current epoch",
    "num_peers": "Trainers seen lately",
    "min_peers": "Trainers that the config asks for",
    "target_batch_size": "Samples of the whole swarm in one epoch",
    "samples_accumulated": "Samples of the current epoch so far",
    "samples_per_second": "Samples per second of the whole swarm",
    "samples_total": "Samples of all finished epochs",
    "loss": "Training loss of the last finished epoch",
    "checkpoint_epoch": "Epoch of the newest checkpoint",
}


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all figures as text."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    _runs(registry, timezone.now())
    _site(registry)
    text = generate_latest(registry) + generate_latest(PROCESS)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _runs(registry: CollectorRegistry, now: datetime) -> None:
    gauges = {
        name: Gauge(f"beeyard_run_{name}", text, ["run"], registry=registry)
        for name, text in _FIGURES.items()
    }
    age = Gauge(
        "beeyard_run_snapshot_age_seconds", "Age of the snapshot", ["run"], registry=registry
    )
    peers = Gauge(
        "beeyard_run_peers", "Peers by what the evidence says", ["run", "state"], registry=registry
    )
    swarms = RunSwarm.objects.select_related("run").filter(run__is_public=True)
    for swarm in swarms.exclude(run__state=RunState.DRAFT):
        slug = swarm.run.slug
        for name, gauge in gauges.items():
            value = swarm.live.get(name)
            if isinstance(value, int | float):
                gauge.labels(run=slug).set(value)
        if swarm.received_at:
            age.labels(run=slug).set((now - swarm.received_at).total_seconds())
        states = Counter(peer.get("state") for peer in swarm.live.get("peers", {}).values())
        for state in PeerState:
            peers.labels(run=slug, state=state).set(states[state])
    alerts = Gauge(
        "beeyard_alerts",
        "Alerts of public runs that are not closed",
        ["run", "kind", "severity"],
        registry=registry,
    )
    for run, kind, severity, num in alerts_by_kind(is_public=True):
        alerts.labels(run=run, kind=kind, severity=severity).set(num)


def _site(registry: CollectorRegistry) -> None:
    runs = Gauge("beeyard_runs", "Public runs by state", ["state"], registry=registry)
    states = Counter(Run.objects.filter(is_public=True).values_list("state", flat=True))
    for state in RunState:
        runs.labels(state=state).set(states[state])
    nodes = node_queues()
    lengths = queue_lengths(nodes)
    if lengths is not None:
        # How nodes are called is the site's own affair: here they are one figure.
        lengths["nodes"] = sum(lengths.pop(name) for name in nodes)
        text = "Jobs that wait for a celery worker"
        queue = Gauge("beeyard_queue_length", text, ["queue"], registry=registry)
        for name, length in lengths.items():
            queue.labels(queue=name).set(length)
    beat = pulse_age(PULSE_CELERY)
    if beat is not None:
        text = "Since celery beat and a worker showed life"
        Gauge("beeyard_celery_age_seconds", text, registry=registry).set(beat)
    check = LedgerCheck.objects.first()
    if check is not None:
        text = "Totals that differ from the ledger, by the newest nightly check"
        Gauge("beeyard_ledger_differences", text, registry=registry).set(check.num_differences)
