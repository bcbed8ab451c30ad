"""The process of one evaluation: its command, its folder, its place at the end of the queue."""

import json
import os
import shutil
import sys
from pathlib import Path

from django.conf import settings

from web.runs.models import RunConfigVersion
from web.workers.launcher import child_start, environment_clean
from web.workers.models import EvaluationJob

_LOWEST = 19
_THREADS = 1


class CheckpointGone(Exception):
    """The checkpoint's files are no longer kept: newer ones took their place."""


def evaluation_mark(job: EvaluationJob) -> str:
    """Return the mark in the environment of its process."""
    return f"{job.run.slug}/evaluation"


def evaluation_folder(job: EvaluationJob) -> Path:
    """Return where its process writes; removed when the result is stored."""
    return Path(settings.DATA_DIR) / "evaluations" / job.run.slug / f"{job.lineage}-{job.epoch}"


def evaluation_launch(job: EvaluationJob) -> int:
    """Start the process, with lowest priority and without GPU; returns its pid.

    Raises:
        CheckpointGone: the checkpoint is no longer kept here.
        ValueError: its config is gone.
        OSError: it cannot be started.
    """
    folder = evaluation_folder(job)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    checkpoint = _hold(job, folder)
    (folder / "config.json").write_text(json.dumps(_config(job)))
    command = [
        settings.TRAINING_PYTHON or sys.executable,
        *("-m", "training", "evaluate", "--json", "--threads", str(_THREADS)),
        *("--home", str(folder / "home"), "--config", str(folder / "config.json")),
        *("--checkpoint", str(checkpoint), "--artifacts", str(_artifacts(job))),
    ]
    # GPUs are for trainers.
    environment = environment_clean(evaluation_mark(job), threads=_THREADS)
    environment |= {"CUDA_VISIBLE_DEVICES": ""}
    with (folder / "result.json").open("wb") as out, (folder / "errors.log").open("wb") as errors:
        pid = child_start(command, folder=folder, environment=environment, out=out, errors=errors)
    os.setpriority(os.PRIO_PROCESS, pid, _LOWEST)
    return pid


def _hold(job: EvaluationJob, folder: Path) -> Path:
    """Link the checkpoint's files into ``folder``: a coordinator in a hurry may drop its own."""
    name = f"{job.lineage}-{job.epoch:08d}"
    kept = Path(settings.CHECKPOINTS_DIR) / job.run.slug / name
    try:
        shutil.copytree(kept, folder / name, copy_function=_link_or_copy)
    except OSError as error:
        if kept.is_dir():
            raise
        raise CheckpointGone from error
    return folder / name


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or one without links
        shutil.copy2(source, target)


def _config(job: EvaluationJob) -> dict[str, object]:
    """Return the config the checkpoint was saved with, measured as the newest one says."""
    versions = RunConfigVersion.objects.filter(run_id=job.run_id).order_by("-version")
    saved_with = versions.filter(version=job.config_version).first()
    newest = versions.first()
    if saved_with is None or newest is None:
        raise ValueError("the config that it was saved with is gone")
    wanted = newest.body.get("evaluation")
    return dict(saved_with.body) | ({"evaluation": wanted} if wanted else {})


def _artifacts(job: EvaluationJob) -> Path:
    """Return where the config's files are: the site's, or what the coordinator here fetched."""
    own = Path(settings.ARTIFACTS_DIR)
    if own.is_dir():
        return own
    homes = Path(settings.WORKERS_DIR) / job.run.slug / "coordinator" / "home" / "runs"
    return next(homes.glob(f"*/{job.run.slug}/artifacts"), own)
