"""What managed workers and evaluations are told of runs."""

from typing import Any

from django.dispatch import receiver

from web.runs.models import Run
from web.runs.signals import run_changed
from web.workers.evaluations import evaluation_automatic


@receiver(run_changed, dispatch_uid="evaluate-new-checkpoints")
def checkpoint_saved(sender: type[Run], run: Run, kind: str, **rest: Any) -> None:
    """Evaluate what was just saved, if the run's config says so; in the same transaction."""
    if kind == "checkpoint.saved":
        evaluation_automatic(run)
