"""Start one managed worker: a fresh interpreter with its own session, folder and environment.

hivemind forks, so it can live neither in a Celery child nor beside database connections.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from training.protocol.names import ENV_DATA, ENV_PROCESS
from web.core.secretfiles import secret_file_write
from web.workers.models import ManagedWorker, WorkerNode

LOG_BYTES = 5_000_000
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "LD_LIBRARY_PATH",
    "OPENBLAS_CORETYPE",
)
"""What a managed worker may inherit: no secret, no database, no Redis."""
_children: "list[subprocess.Popen[bytes]]" = []


def worker_folder(worker: ManagedWorker) -> Path:
    """Return the private folder of a managed worker: its home, token and log."""
    return Path(settings.WORKERS_DIR) / worker.run.slug / worker.name


def log_path(worker: ManagedWorker) -> Path:
    return worker_folder(worker) / "output.log"


def process_mark(worker: ManagedWorker) -> str:
    """Return the mark in the environment of the process and of all that it starts."""
    return f"{worker.run.slug}/{worker.name}"


def run_url(worker: ManagedWorker) -> str:
    """Return the run's address as this machine reaches it, which may differ from the public one."""
    return f"{site_url()}/runs/{worker.run.slug}/"


def site_url() -> str:
    """Return where this node reaches the site: itself, or what the site's own node says."""
    if settings.SITE_URL:
        return str(settings.SITE_URL)
    homes = WorkerNode.objects.exclude(site_url="").order_by("-seen_at")
    home = homes.values_list("name", "site_url").first()
    if home is None or home[0] == settings.NODE:
        return str(settings.SITE_LOCAL_URL)
    return str(home[1])


def arguments(worker: ManagedWorker) -> list[str]:
    """Return the command line; secrets are in files, never here."""
    folder = worker_folder(worker)
    is_coordinator = worker.kind == ManagedWorker.Kind.COORDINATOR
    command = [
        settings.TRAINING_PYTHON or sys.executable,
        *("-m", "training", "coordinator" if is_coordinator else "join", run_url(worker)),
        *("--home", str(folder / "home"), "--token-file", str(folder / "token")),
    ]
    if settings.SWARM_BIND:
        command += ["--bind", settings.SWARM_BIND]
    if not is_coordinator:
        own = ("--name", worker.name, "--threads", str(worker.threads), "--plain", "--once")
        return [*command, *own, "--role", worker.kind]
    checkpoints = Path(settings.CHECKPOINTS_DIR) / worker.run.slug
    return [*command, "--port", str(worker.port or 0), "--checkpoints", str(checkpoints)]


def environment(worker: ManagedWorker) -> dict[str, str]:
    """Return the whole environment of the process."""
    found = environment_clean(process_mark(worker), threads=worker.threads)
    if worker.device:
        kind, _, number = worker.device.partition(":")
        # The trainer takes the first GPU that it sees: it is shown the one it should have.
        found["CUDA_VISIBLE_DEVICES"] = number if kind == "cuda" else ""
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return found


def environment_clean(mark: str, *, threads: int) -> dict[str, str]:
    """Return an environment without secrets for a process that bears ``mark``."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return kept | {
        "PYTHONPATH": str(settings.BASE_DIR),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(threads),
        ENV_DATA: str(settings.DATA_DIR),
        ENV_PROCESS: mark,
    }


def worker_launch(worker: ManagedWorker, token: str) -> int:
    """Start the process and return its pid, which is also its session's id.

    Raises:
        OSError: the folder cannot be written or the interpreter cannot be started.
    """
    folder = worker_folder(worker)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    secret_file_write(folder / "token", token)
    _log_rotate(log_path(worker))
    with log_path(worker).open("ab") as log:
        return child_start(
            arguments(worker),
            folder=folder,
            environment=environment(worker),
            out=log,
            errors=subprocess.STDOUT,
        )


def child_start(
    command: list[str],
    *,
    folder: Path,
    environment: dict[str, str],
    out: BinaryIO,
    errors: BinaryIO | int,
) -> int:
    """Start a process in a session of its own and return its pid.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        start_new_session=True,
        close_fds=True,
    )
    _children.append(process)
    return process.pid


def children_reap() -> None:
    """Collect those children of this very process that ended, or they stay as zombies."""
    _children[:] = [child for child in _children if child.poll() is None]


def _log_rotate(path: Path) -> None:
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
