"""What may be launched where: a node's limits, and the coordinator that comes along."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import node_make
from tests.factories_runs import run_make
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run
from web.runs.services import run_transition
from web.workers.launching import COORDINATOR_MEMORY_MB, Order, managed_workers_launch
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.places import node_use
from web.workers.room import Use
from web.workers.services import (
    Placement,
    managed_worker_create,
    managed_worker_restart,
    managed_worker_start,
    managed_worker_stop,
)

pytestmark = pytest.mark.django_db


def order(count: int = 1, kind: str = "trainer", **place: object) -> Order:
    return Order(ManagedWorker.Kind(kind), count, Placement(**place))  # type: ignore[arg-type]


def test_nothing_is_launched_beyond_a_nodes_limits_or_on_one_that_is_away(alice: User) -> None:
    run = run_make(alice)
    node_make("annex", max_processes=3, max_threads=8, max_memory_mb=4100)
    place = {"node": "annex", "memory_mb": 1000, "threads": 2}
    assert managed_workers_launch(alice, run, order(2, **place)) == [
        "coordinator",
        "trainer-1",
        "trainer-2",
    ]
    assert node_use("annex") == Use(3, 5, COORDINATOR_MEMORY_MB + 2000)
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
    with pytest.raises(AppError, match="3 processes"):
        managed_worker_restart(alice, first)
    first.refresh_from_db()
    assert first.desired == "stopped"
    WorkerNode.objects.update(left_at=timezone.now())
    for worker in (first, second):
        for act in (managed_worker_start, managed_worker_restart):
            with pytest.raises(AppError, match=r"annex is away.*Start the node again, or launch"):
                act(alice, worker)


def test_a_coordinator_that_comes_with_peers_is_not_bound_like_them(alice: User) -> None:
    """One for an hour would leave with them, and nobody could enter after that."""
    node_make("annex")
    place = {"device": "cuda:0", "threads": 9, "memory_mb": 512, "hours": 1.0}
    managed_workers_launch(alice, run_make(alice), order(1, node="annex", **place))
    trainer = ManagedWorker.objects.get(kind="trainer")
    assert (trainer.hours, trainer.memory_mb, trainer.threads) == (1.0, 512, 9)
    coordinator = ManagedWorker.objects.get(kind="coordinator")
    assert (coordinator.node, coordinator.device, coordinator.threads) == ("annex", "", 1)
    assert (coordinator.hours, coordinator.wanted_until, coordinator.memory_mb) == (None,) * 3
    WorkerNode.objects.update(max_memory_mb=8000)
    managed_workers_launch(alice, run_make(alice, "other"), order(1, node="annex", **place))
    assert ManagedWorker.objects.get(run__slug="other", kind="coordinator").memory_mb == (
        COORDINATOR_MEMORY_MB
    )
    run = run_make(alice, "third")
    managed_workers_launch(alice, run, order(1, "coordinator", node="annex", **place))
    assert ManagedWorker.objects.get(run=run).hours == 1.0, "who asks for that gets it"


def test_nothing_is_launched_for_a_run_that_is_over(alice: User) -> None:
    run = run_make(alice)
    managed_workers_launch(alice, run, order())
    run_transition(alice, run, "finish")
    Run.objects.update(state="finished")
    with pytest.raises(AppError, match="over"):
        managed_workers_launch(alice, run, order())
    with pytest.raises(AppError, match="over"):
        managed_worker_start(alice, ManagedWorker.objects.select_related("run").latest("pk"))


def test_stopped_workers_are_removed_and_make_room(client: Client, alice: User) -> None:
    run = run_make(alice)
    client.force_login(alice)
    for number in range(1, 33):
        managed_worker_create(alice, run, "trainer", f"trainer-{number}")
    with pytest.raises(AppError, match="at most 32 trainers here: remove stopped ones first"):
        managed_workers_launch(alice, run, order(1))
    page, path = "/control/runs/demo/", "/control/runs/demo/workers/trainer-7/"
    assert "Remove trainer-7" not in client.get(page).text
    assert client.post(f"{path}remove/").status_code == 422
    ManagedWorker.objects.filter(name="trainer-7").update(desired="stopped", state="stopped")
    assert "Remove trainer-7" in client.get(page).text
    answer = client.post(f"{path}remove/", follow=True)
    assert "trainer-7 is removed" in answer.text
    assert client.get(path).status_code == 404
    entry = AuditEntry.objects.get(code="worker.removed")
    assert (entry.target, entry.run, entry.data["kind"]) == ("demo/trainer-7", "demo", "trainer")
    assert managed_workers_launch(alice, run, order(1))[-1] == "trainer-7"


def test_what_was_typed_to_launch_is_not_lost_when_it_is_refused(
    client: Client, alice: User
) -> None:
    run_make(alice)
    node_make("annex", max_processes=1)
    client.force_login(alice)
    launch = "/control/runs/demo/workers/launch/"
    for typed, why in (
        ({"count": "3", "hours": "many"}, "Enter a number."),
        ({"count": "3", "hours": "2.5"}, "Node annex has no room"),
    ):
        answer = client.post(launch, typed | {"node": "annex", "threads": "7", "memory_mb": "4321"})
        assert answer.status_code == 422
        assert '<details class="launch" open>' in answer.text
        for value in (*typed.values(), "7", "4321"):
            assert f'value="{value}"' in answer.text, value
        assert '<option value="annex" selected>' in answer.text
        assert why in answer.text
    assert not ManagedWorker.objects.exists()


def test_what_was_typed_as_a_nodes_limits_is_not_lost_when_it_is_refused(
    client: Client, alice: User
) -> None:
    for name in ("annex", "barn"):
        node_make(name)
    client.force_login(alice)
    typed = {"processes": "5", "threads": "-3", "memory_mb": "6543"}
    answer = client.post("/control/nodes/annex/limits/", typed)
    assert answer.status_code == 422
    for value in typed.values():
        assert answer.text.count(f'value="{value}"') == 1, "and only in the form of this node"
    assert 'id="id_annex_threads_error"' in answer.text
    assert WorkerNode.objects.get(name="annex").max_processes is None


def test_a_restart_without_room_says_so_on_the_workers_page(client: Client, alice: User) -> None:
    worker = managed_worker_create(alice, run_make(alice), "trainer", "trainer-1")
    node_make(worker.node, left_at=timezone.now())
    client.force_login(alice)
    answer = client.post("/control/runs/demo/workers/trainer-1/restart/", follow=True)
    assert "is away: nothing can be started" in answer.text
