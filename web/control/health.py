"""How the site itself does, for its staff."""

import os
import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django
import psutil
from django.db.models import Max
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from training.protocol.names import TRAINER_VERSION
from training.protocol.states import RunState
from web.alerts.gather import disk_gather
from web.alerts.models import AlertTrack
from web.control.access import DeskRequest, staff_only
from web.core.pulse import PULSE_CELERY, pulse_age
from web.core.services_health import database_look, queue_lengths, redis_look
from web.core.slowqueries import SLOW_LOG
from web.monitoring.models import MetricPoint, RunSwarm
from web.workers.node_selectors import node_queues

_PACKAGES = ("channels", "celery", "redis", "django-ninja", "django-allauth", "uvicorn")
_LIMITS = {"beat": 60.0, "snapshot": 60.0, "rollup": 300.0, "alerts": 90.0}
"""Seconds after which an age is shown as bad."""


@staff_only
@require_safe
def health_page(request: DeskRequest) -> HttpResponse:
    """Versions, queues, ages, services, slow statements, disk."""
    used, total = disk_gather()
    process = psutil.Process()
    context = {
        "versions": _versions(),
        "queues": queue_lengths(node_queues()),
        "ages": _ages(timezone.now()),
        "services": [database_look(), redis_look()],
        "slow": [
            {"row": row, "at": datetime.fromtimestamp(row.last_at, timezone.get_current_timezone())}
            for row in SLOW_LOG.worst()
        ],
        "disk": {"used": used, "free": total - used, "share": used / total if total else None},
        "process": {
            "pid": os.getpid(),
            "memory": process.memory_info().rss,
            "began": datetime.fromtimestamp(process.create_time(), timezone.get_current_timezone()),
        },
    }
    response = render(request, "control/health.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _versions() -> list[tuple[str, str]]:
    rows = [
        ("Beeyard", TRAINER_VERSION),
        ("Python", platform.python_version()),
        ("Django", django.get_version()),
    ]
    for package in _PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return rows


def _ages(now: datetime) -> list[dict[str, Any]]:
    """Return each sign of life with its age in seconds (None: never) and whether it is too old."""
    beat = pulse_age(PULSE_CELERY)
    checked = AlertTrack.objects.aggregate(at=Max("checked_at"))["at"]
    minutes = MetricPoint.objects.filter(resolution=MetricPoint.Resolution.MINUTE)
    rolled = minutes.order_by("-at").values_list("at", flat=True).first()
    rows = [
        _age_row("Celery worker and beat", beat, "beat"),
        _age_row("Check of alerts", _seconds(checked, now), "alerts"),
        _age_row("Newest point by the minute", _seconds(rolled, now), "rollup"),
    ]
    # A run that is not open may be without a coordinator.
    swarms = RunSwarm.objects.filter(run__state=RunState.OPEN).defer("live", "trails")
    for swarm in swarms.select_related("run")[:100]:
        name = f"Coordinator of {swarm.run.title}"
        rows.append(_age_row(name, _seconds(swarm.received_at, now), "snapshot"))
    return rows


def _age_row(name: str, seconds: float | None, limit: str) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": seconds,
        "is_late": seconds is None or seconds > _LIMITS[limit],
    }


def _seconds(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else max(0.0, (now - at).total_seconds())
