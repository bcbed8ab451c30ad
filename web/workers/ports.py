"""Ports of coordinators: chosen once and kept, since peers remember the address."""

import socket

from django.conf import settings

from web.workers.models import ManagedWorker


def coordinator_port(worker: ManagedWorker) -> int:
    """Return the port that a coordinator keeps; a new one when a stranger has taken it since."""
    if worker.port and (settings.SWARM_PORT or _is_free(worker.port)):
        return worker.port
    others = ManagedWorker.objects.exclude(pk=worker.pk).exclude(port=None)
    taken = set(others.values_list("port", flat=True))
    first = int(settings.SWARM_PORT)
    if first:
        return next(port for port in range(first, 65536) if port not in taken)
    while True:
        with _probe() as probe:
            probe.bind((_host(), 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def _is_free(port: int) -> bool:
    with _probe() as probe:
        try:
            probe.bind((_host(), port))
        except OSError:
            return False
        return True


def _probe() -> socket.socket:
    probe = socket.socket(socket.AF_INET6 if ":" in settings.SWARM_BIND else socket.AF_INET)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe


def _host() -> str:
    bind = str(settings.SWARM_BIND) or "0.0.0.0"  # noqa: S104
    return "127.0.0.1" if bind == "localhost" else bind
