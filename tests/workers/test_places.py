"""What may be launched where: a node's limits, and the coordinator that comes along."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import node_make
from tests.factories_runs import run_make
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.services import run_transition
from web.workers.launching import Order, managed_workers_launch
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.places import node_use
from web.workers.room import Use
from web.workers.services import Placement, managed_worker_start, managed_worker_stop

pytestmark = pytest.mark.django_db


def order(count: int = 1, kind: str = "trainer", **place: object) -> Order:
    return Order(ManagedWorker.Kind(kind), count, Placement(**place))  # type: ignore[arg-type]


def test_nothing_is_launched_beyond_a_nodes_limits_or_on_one_that_is_away(alice: User) -> None:
    run = run_make(alice)
    node_make("annex", max_processes=3, max_threads=8, max_memory_mb=4000)
    place = {"node": "annex", "memory_mb": 1000, "threads": 2}
    assert managed_workers_launch(alice, run, order(2, **place)) == [
        "coordinator",
        "trainer-1",
        "trainer-2",
    ]
    assert node_use("annex") == Use(3, 6, 3000)
    for wrong, why in (
        (order(1, **place), "3 processes"),
        (order(1, node="nowhere"), "no node nowhere"),
        (order(1, kind="coordinator"), "one managed coordinator"),
    ):
        with pytest.raises(AppError, match=why):
            managed_workers_launch(alice, run, wrong)
    ManagedWorker.objects.filter(name="trainer-1").update(desired="stopped")
    with pytest.raises(AppError, match="needs a memory limit"):
        managed_workers_launch(alice, run, order(1, node="annex"))
    WorkerNode.objects.update(left_at=timezone.now())
    with pytest.raises(AppError, match="annex is away"):
        managed_workers_launch(alice, run, order(1, **place))
    assert ManagedWorker.objects.count() == 3


def test_starting_again_keeps_to_a_nodes_limits(client: Client, alice: User) -> None:
    run = run_make(alice)
    node_make("annex", max_processes=3)
    managed_workers_launch(alice, run, order(2, node="annex"))
    first, second = ManagedWorker.objects.filter(kind="trainer").order_by("name")
    managed_worker_stop(alice, first)
    assert managed_workers_launch(alice, run, order(1, node="annex")) == ["trainer-3"]
    with pytest.raises(AppError, match="3 processes"):
        managed_worker_start(alice, first)
    managed_worker_start(alice, second)  # it has its room already
    client.force_login(alice)
    answer = client.post("/control/runs/demo/workers/trainer-1/start/", follow=True)
    assert "Node annex has no room" in answer.text
    WorkerNode.objects.update(left_at=timezone.now())
    with pytest.raises(AppError, match="annex is away"):
        managed_worker_start(alice, first)


def test_the_coordinator_that_comes_along_outlives_the_trainers_hours(alice: User) -> None:
    managed_workers_launch(alice, run_make(alice), order(1, hours=1.0, device="cpu"))
    coordinator = ManagedWorker.objects.get(kind="coordinator")
    assert (coordinator.hours, coordinator.wanted_until, coordinator.device) == (None, None, "")
    assert ManagedWorker.objects.get(kind="trainer").wanted_until is not None


def test_nothing_is_launched_for_a_run_that_is_over(alice: User) -> None:
    run = run_make(alice)
    managed_workers_launch(alice, run, order())
    run_transition(alice, run, "finish")
    Run.objects.update(state="finished")
    with pytest.raises(AppError, match="over"):
        managed_workers_launch(alice, run, order())
    with pytest.raises(AppError, match="over"):
        managed_worker_start(alice, ManagedWorker.objects.select_related("run").latest("pk"))
