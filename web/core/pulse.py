"""Signs of life of background processes: each writes the time, readiness reads its age."""

import time

from django.core.cache import cache

_KEPT_SECONDS = 3600
PULSE_CELERY = "celery"


def pulse_write(name: str) -> None:
    """Say that ``name`` is alive now."""
    cache.set(f"pulse:{name}", time.time(), timeout=_KEPT_SECONDS)


def pulse_age(name: str) -> float | None:
    """Return the seconds since the last sign of life, None when there was none lately."""
    at = cache.get(f"pulse:{name}")
    return None if at is None else max(0.0, time.time() - float(at))
