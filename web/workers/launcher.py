"""Start one managed worker: a fresh interpreter with its own session, folder and environment.

hivemind forks, so it can live neither in a Celery child nor beside database connections.
"""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from training.protocol.names import ENV_DATA, ENV_PROCESS
from web.core.secretfiles import secret_file_write
from web.workers.models import ManagedWorker

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
    return f"{settings.SITE_LOCAL_URL}/runs/{worker.run.slug}/"


def arguments(worker: ManagedWorker) -> list[str]:
    """Return the command line; secrets are in files, never here."""
    folder = worker_folder(worker)
    is_trainer = worker.kind == ManagedWorker.Kind.TRAINER
    command = [
        settings.TRAINING_PYTHON or sys.executable,
        *("-m", "training", "join" if is_trainer else "coordinator", run_url(worker)),
        *("--home", str(folder / "home"), "--token-file", str(folder / "token")),
        *("--bind", settings.SWARM_BIND),
    ]
    if is_trainer:
        return [*command, "--name", worker.name, "--threads", "1", "--plain", "--once"]
    checkpoints = Path(settings.CHECKPOINTS_DIR) / worker.run.slug
    return [*command, "--port", str(worker.port or 0), "--checkpoints", str(checkpoints)]


def environment(worker: ManagedWorker) -> dict[str, str]:
    """Return the whole environment of the process."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return kept | {
        "PYTHONPATH": str(settings.BASE_DIR),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        ENV_DATA: str(settings.DATA_DIR),
        ENV_PROCESS: process_mark(worker),
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
        process = subprocess.Popen(
            arguments(worker),
            cwd=folder,
            env=environment(worker),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
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
