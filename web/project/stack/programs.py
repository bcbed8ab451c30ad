"""Which processes the site consists of, and how each is started."""

import sys
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from web.project.celery import QUEUES
from web.project.stack.redis_server import EmbeddedRedis
from web.project.stack.supervise import Program
from web.workers.nodes import node_queue


def programs(redis: EmbeddedRedis | None) -> list[Program]:
    """Return the programs in the order in which they start."""
    found = [Program("redis", redis.command, 10)] if redis else []
    return [*found, _web(), _celery(), _beat()]


def _web() -> Program:
    command = [
        *(sys.executable, "-m", "uvicorn", "web.project.asgi:application"),
        *("--host", settings.BIND, "--port", str(settings.PORT)),
        *("--http", "web.project.patience:PatientProtocol"),
        # Compressing 1 kB patches for each socket costs more than it saves.
        *("--ws", "web.project.lingering:CutProtocol", "--ws-per-message-deflate", "false"),
        *("--ws-max-size", "65536"),
        *("--timeout-graceful-shutdown", "5", "--no-access-log", "--lifespan", "off"),
    ]
    return Program("web", command, 20)


def _celery() -> Program:
    command = celery_command((*QUEUES, node_queue(settings.NODE)))
    return Program("celery", command, 30, stop_seconds=20)


def celery_command(queues: Sequence[str]) -> list[str]:
    """Return how a celery worker that consumes these queues is started."""
    return [
        *(sys.executable, "-m", "celery", "-A", "web.project.celery:app", "worker"),
        *("--queues", ",".join(queues), "--concurrency", "2", "--loglevel", "INFO"),
        *("--hostname", f"{settings.NODE}@%h", "--without-gossip", "--without-mingle"),
    ]


def _beat() -> Program:
    schedule = Path(settings.DATA_DIR) / "run" / "beat-schedule"
    command = [
        *(sys.executable, "-m", "celery", "-A", "web.project.celery:app", "beat"),
        *("--schedule", str(schedule), "--pidfile", "", "--loglevel", "WARNING"),
    ]
    return Program("beat", command, 40)
