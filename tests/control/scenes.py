"""A run in which somebody did harm; plain functions."""

from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from tests.factories_runs import Swarm, report_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.runs.models import Checkpoint


def harmed_run(organiser: User, users: Sequence[User], slug: str = "demo") -> Swarm:
    """Return a swarm with a machine of each of ``users``: epochs 0 to 5, states of 2 and 4."""
    swarm = swarm_make(run_make(organiser, slug), len(users), users=users)
    began = timezone.now() - timedelta(minutes=5)
    for epoch in range(6):
        now = began + timedelta(seconds=30 * epoch)
        report = report_make(swarm, epoch, now, samples=50)
        snapshot_take(swarm, now, epoch=epoch + 1, finished_epochs=(report,))
    snapshot_take(swarm, epoch=6)
    for epoch in (2, 4):
        Checkpoint.objects.create(
            run=swarm.run, lineage=1, epoch=epoch, config_version=1, files=[],
            manifest=f"manifest {epoch}", saved_at=began + timedelta(seconds=30 * epoch),
        )  # fmt: skip
    return swarm
