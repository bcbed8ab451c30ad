"""Whether the site and what it leans on are alive."""

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from training.protocol.names import TRAINER_VERSION
from training.protocol.states import RunState
from web.contributions.models import LedgerCheck
from web.core.pulse import PULSE_CELERY, pulse_age
from web.core.redis import redis_client
from web.runs.models import Run

logger = logging.getLogger(__name__)
CELERY_LIMIT_SECONDS = 60.0
COORDINATOR_LIMIT_SECONDS = 60.0
_SEEN_STATES = (RunState.OPEN, RunState.FINISHING)


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Say that this process answers, whatever else is broken."""
    return JsonResponse({"status": "ok", "version": TRAINER_VERSION})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Say whether everything works that the site needs, and how old each sign of life is."""
    checks = {
        "database": _attempt(_database),
        "redis": _attempt(_redis),
        "celery": _attempt(_celery),
    }
    body: dict[str, Any] = {"checks": checks, "coordinators": {}, "ledger": None}
    if checks["database"]["ok"]:
        body["coordinators"] = _coordinators()
        body["ledger"] = _ledger()  # told, not asked for: the site works with wrong totals
    good = all(check["ok"] for check in (*checks.values(), *body["coordinators"].values()))
    body["status"] = "ok" if good else "unavailable"
    response = JsonResponse(body, status=200 if good else 503)
    response["Cache-Control"] = "no-store"
    return response


def _ledger() -> dict[str, Any] | None:
    """Return what the newest comparison of totals and ledger found."""
    check = LedgerCheck.objects.first()
    if check is None:
        return None
    age = (timezone.now() - check.at).total_seconds()
    return {"ok": not check.num_differences, "age": age, "differences": check.num_differences}


def _attempt(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return check()
    except (DatabaseError, RedisError, OSError) as error:
        logger.warning("readiness: %s: %s", check.__name__.strip("_"), error)
        return {"ok": False, "age": None, "detail": type(error).__name__}


def _database() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return {"ok": True, "age": 0.0}


def _redis() -> dict[str, Any]:
    cache.get("readyz")
    if settings.LIVE_BACKEND == "redis":
        redis_client().ping()
    return {"ok": True, "age": 0.0}


def _celery() -> dict[str, Any]:
    age = pulse_age(PULSE_CELERY)
    return {"ok": age is not None and age < CELERY_LIMIT_SECONDS, "age": age}


def _coordinators() -> dict[str, Any]:
    now = timezone.now()
    found = {}
    for run in Run.objects.filter(state__in=_SEEN_STATES).select_related("swarm"):
        swarm = getattr(run, "swarm", None)
        received = swarm.received_at if swarm else None
        age = (now - received).total_seconds() if received else None
        label = run.slug if run.is_public else f"private-{run.pk}"
        found[label] = {"ok": age is not None and age < COORDINATOR_LIMIT_SECONDS, "age": age}
    return found
