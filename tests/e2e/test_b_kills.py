"""Kill -9 of each part: training goes on or resumes, and no ledger row is lost or doubled."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.e2e.installation import Installation, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def kept_and_growing(site: Installation, before: dict[tuple[int, int], int]) -> Callable[[], bool]:
    def check() -> bool:
        now = site.ledger()
        assert all(now.get(key) == samples for key, samples in before.items()), "a row was lost"
        newest = max((epoch for epoch, _ in before), default=0)
        return max((epoch for epoch, _ in now), default=0) > newest

    return check


@pytest.mark.parametrize("name", ["redis", "celery", "web"])
def test_a_killed_part_of_the_site_is_restarted_and_nothing_is_lost(
    training_site: Installation, name: str
) -> None:
    before = training_site.ledger()
    victims = training_site.processes(name)
    assert victims, f"no process is called {name}"
    for process in victims:
        process.kill()
    wait_for(f"a new {name}", lambda: set(training_site.processes(name)) - set(victims), 60)
    wait_for("the next epoch", kept_and_growing(training_site, before), 120)
    wait_for("readiness", lambda: training_site.get("/readyz"), 60)


def test_a_killed_trainer_is_restarted_and_the_epoch_goes_on(training_site: Installation) -> None:
    before, pid = training_site.ledger(), training_site.worker_pid("trainer-1")
    assert pid
    kill(pid)
    wait_for("the next epoch", kept_and_growing(training_site, before), 120)
    wait_for(
        "a new trainer",
        lambda: training_site.worker_pid("trainer-1") not in (None, pid),
        90,
    )
    orphans = [p for p in training_site.processes() if group_of(p.pid) == pid]
    assert not orphans


def test_a_killed_coordinator_is_restarted_into_the_same_swarm(
    training_site: Installation,
) -> None:
    before, pid = training_site.ledger(), training_site.worker_pid("coordinator")
    epoch = training_site.state()["epoch"]
    assert pid
    kill(pid)
    wait_for(
        "a new coordinator",
        lambda: training_site.worker_pid("coordinator") not in (None, pid),
        90,
    )
    wait_for("the next epoch", kept_and_growing(training_site, before), 180)
    state = training_site.state()
    assert state["epoch"] > epoch, "the swarm was split or started anew"
    epochs = {epoch for epoch, _ in training_site.ledger()}
    assert epochs == set(range(min(epochs), max(epochs) + 1)), "an epoch is missing in the ledger"


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1
