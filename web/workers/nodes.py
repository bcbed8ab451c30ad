"""Nodes: how one describes itself, and what its owner allows on it."""

import os
import platform
import shutil
import subprocess
import uuid
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import IntegrityError, transaction

from training.protocol.names import TRAINER_VERSION
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.secretfiles import secret_file_keep
from web.workers.models import WorkerNode
from web.workers.room import Limits

LOOK_SECONDS = 4.0
AWAY = timedelta(seconds=30)
"""A node that was not seen for this long is away; several looks in a row failed."""
_MIB = 1 << 20


class NodeTaken(Exception):
    """Another installation runs under this node's name."""


def node_queue(name: str) -> str:
    """Return the celery queue that only this node consumes."""
    return f"node.{name}"


def is_away(node: WorkerNode, now: datetime) -> bool:
    """Whether nothing is known of the node's processes any more."""
    return node.left_at is not None or now - node.seen_at > AWAY


def node_beat(now: datetime, *, is_home: bool) -> WorkerNode:
    """Say that this node is alive, with what it is; its first word makes its row.

    Args:
        is_home: it is the site's own node, which tells the others where the site is.

    Raises:
        NodeTaken: another installation was seen under the same name within ``AWAY``.
    """
    installation = installation_id()
    about = node_about() | {
        "installation": installation,
        "seen_at": now,
        "left_at": None,
        "site_url": settings.PUBLIC_URL if is_home else "",
    }
    node = WorkerNode.objects.filter(name=settings.NODE).first()
    if node is None:
        try:
            with transaction.atomic():
                return WorkerNode.objects.create(name=settings.NODE, started_at=now, **about)
        except IntegrityError:  # its other celery child was faster
            node = WorkerNode.objects.get(name=settings.NODE)
    is_same = node.installation == installation
    if not is_same and not is_away(node, now):
        raise NodeTaken(
            f"the name {node.name} belongs to {node.host}, which is alive: "
            "give this node another name with BEEYARD_NODE"
        )
    if not is_same or is_away(node, now):
        about["started_at"] = now
    WorkerNode.objects.filter(pk=node.pk).update(**about)
    node.refresh_from_db()
    return node


def node_leave(now: datetime) -> None:
    """Say that this node stops in order."""
    mine = WorkerNode.objects.filter(name=settings.NODE, installation=installation_id())
    mine.update(left_at=now)


@transaction.atomic
def node_limits_set(actor: User, node: WorkerNode, limits: Limits) -> None:
    """Bound what may be launched on a node; what runs already stays."""
    before = limits_of(WorkerNode.objects.select_for_update().get(pk=node.pk))
    WorkerNode.objects.filter(pk=node.pk).update(
        max_processes=limits.processes,
        max_threads=limits.threads,
        max_memory_mb=limits.memory_mb,
    )
    data = {"before": before.__dict__, "after": limits.__dict__}
    audit_record(actor, "node.limits.set", f"node/{node.name}", data)


def limits_of(node: WorkerNode) -> Limits:
    return Limits(node.max_processes, node.max_threads, node.max_memory_mb)


def installation_id() -> str:
    """Return the id of this installation, made once and kept in its data folder."""
    path = Path(settings.DATA_DIR) / "node.id"
    secret_file_keep(path, lambda: uuid.uuid4().hex)
    return path.read_text().strip()


@lru_cache(maxsize=1)
def node_about() -> dict[str, Any]:
    """Return what this machine is; it is asked once per process."""
    return {
        "host": platform.node()[:120],
        "cpus": _cpus(),
        "memory_mb": int(psutil.virtual_memory().total) // _MIB,
        "devices": _gpus(),
        "version": TRAINER_VERSION,
    }


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpus() -> list[dict[str, str]]:
    """Return the GPUs that the driver's own tool lists; the site has no torch to ask."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split(",", 1) for line in result.stdout.splitlines() if "," in line]
    return [{"device": f"cuda:{i.strip()}", "name": name.strip()[:60]} for i, name in rows[:64]]
