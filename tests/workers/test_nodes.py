"""Each node looks after its own processes, says that it is there, and has bounds."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from tests.factories import node_make
from tests.factories_runs import run_make
from tests.workers.conftest import Program
from tests.workers.test_launch import heard, look, look_until
from training.protocol.states import WorkerState
from web.accounts.models import ApiToken, User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run
from web.workers.decide import Action
from web.workers.launcher import arguments, run_url, worker_folder
from web.workers.launching import Order, managed_workers_launch
from web.workers.logs import log_clean
from web.workers.models import ManagedWorker, WorkerNode
from web.workers.node_selectors import node_rows, unknown_since
from web.workers.nodes import AWAY, NodeTaken, node_beat, node_leave
from web.workers.processes import is_alive, wait_until
from web.workers.rekey import managed_worker_keys_replace
from web.workers.removal import managed_worker_remove, node_forget
from web.workers.room import Limits, Use, room_refusal
from web.workers.services import (
    Placement,
    managed_worker_create,
    managed_worker_restart,
    workers_stop_all,
)
from web.workers.tasks import managed_worker_log_task, node_look_task

pytestmark = pytest.mark.django_db


def test_a_node_says_what_it_is_and_when_it_was_there(program: Program) -> None:
    node_look_task(is_home=True)
    node = WorkerNode.objects.get()
    assert (node.name, node.site_url) == ("site", "http://127.0.0.1:8000")
    assert node.cpus >= 1
    assert node.memory_mb > 100
    later = timezone.now() + timedelta(seconds=4)
    assert node_beat(later, is_home=True).started_at == node.started_at
    node_leave(later)
    assert node_beat(later + AWAY, is_home=True).started_at > node.started_at


def test_two_machines_cannot_have_one_name_but_a_dead_ones_is_free(program: Program) -> None:
    node = node_make("site")
    with pytest.raises(NodeTaken, match=r"belongs to site.example.*BEEYARD_NODE"):
        node_beat(timezone.now(), is_home=True)
    node_look_task(is_home=True)  # says so in its log, and does nothing
    assert WorkerNode.objects.get().installation == node.installation
    assert node_beat(timezone.now() + AWAY + AWAY, is_home=True).installation != "of site"


def test_only_the_node_of_a_worker_starts_and_stops_it(
    coordinator: ManagedWorker, settings: Settings
) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid, started_at = coordinator.pid, coordinator.process_started_at
    settings.NODE = "annex"
    ManagedWorker.objects.update(desired="stopped")
    assert look(coordinator) is Action.NOTHING
    node_look_task(is_home=False)
    workers_stop_all()
    assert is_alive(pid, started_at)
    with pytest.raises(ValueError, match="runs on node site"):
        managed_worker_keys_replace(None, coordinator)
    settings.NODE = "site"
    assert look(coordinator) is Action.STOP


def test_a_node_reaches_the_site_where_the_sites_own_node_says(
    coordinator: ManagedWorker, settings: Settings
) -> None:
    node_make("home", site_url="https://train.example.org")
    settings.NODE, settings.SWARM_BIND = "annex", ""
    assert run_url(coordinator) == "https://train.example.org/runs/demo/"
    assert "--bind" not in arguments(coordinator), "the trainer chooses for itself"
    settings.SITE_URL = "http://10.0.0.1:8000"
    assert run_url(coordinator) == "http://10.0.0.1:8000/runs/demo/"


def test_device_threads_and_memory_reach_the_process(alice: User, program: Program) -> None:
    place = Placement(device="cuda:3", threads=5, memory_mb=4096)
    worker = managed_worker_create(alice, run_make(alice), "coordinator", "coordinator", place)
    look(worker)
    environment = heard(worker)["env"]
    assert environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert environment["OMP_NUM_THREADS"] == "5"
    trainer = ManagedWorker(run=worker.run, kind="trainer", name="t", threads=5)
    words = arguments(trainer)
    assert words[words.index("--threads") + 1] == "5"


def test_one_that_takes_more_memory_than_it_was_given_is_started_again_later(
    coordinator: ManagedWorker,
) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid, started_at = coordinator.pid, coordinator.process_started_at
    ManagedWorker.objects.update(memory_mb=1)
    assert look(coordinator) is Action.KILL_GREEDY
    assert coordinator.state == WorkerState.BACKING_OFF
    assert "took more than 1 MiB" in coordinator.events.first().text  # type: ignore[union-attr]
    assert wait_until(lambda: not is_alive(pid, started_at), 5)
    ManagedWorker.objects.update(memory_mb=100_000, start_after=None)
    look_until(coordinator, WorkerState.RUNNING)


def test_one_that_was_wanted_for_an_hour_leaves_after_it(coordinator: ManagedWorker) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    past = timezone.now() - timedelta(seconds=1)
    ManagedWorker.objects.update(hours=1.0, wanted_until=past)
    assert look(coordinator) is Action.STOP
    assert coordinator.desired == "stopped"
    assert coordinator.events.filter(kind="time is over").exists()


def test_a_restart_is_a_new_process_and_no_failure(coordinator: ManagedWorker, alice: User) -> None:
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid = coordinator.pid
    managed_worker_restart(alice, coordinator)
    assert look(coordinator) is Action.STOP
    look_until(coordinator, WorkerState.RUNNING)
    assert coordinator.pid != pid
    assert (coordinator.num_restarts, coordinator.desired) == (0, "running")
    assert AuditEntry.objects.filter(code="worker.restarted").exists()


def test_a_vanished_nodes_workers_are_unknown_since_it_was_seen(alice: User) -> None:
    now = timezone.now()
    node = node_make("annex", seen_at=now - timedelta(minutes=5))
    run = run_make(alice)
    worker = ManagedWorker(run=run, kind="trainer", name="t", node="annex", state="training")
    assert unknown_since(worker, node, now) == node.seen_at
    worker.state = "stopped"
    assert unknown_since(worker, node, now) is None, "it cannot have changed"
    node.seen_at, worker.state = now, "training"
    assert unknown_since(worker, node, now) is None


def test_a_coordinator_on_a_dead_node_is_replaced_and_ends_when_the_node_comes_back(
    coordinator: ManagedWorker, alice: User, desk: Client
) -> None:
    node_look_task(is_home=True)
    look(coordinator)
    look_until(coordinator, WorkerState.RUNNING)
    pid, started_at = coordinator.pid, coordinator.process_started_at
    with pytest.raises(AppError, match="stop it first"):
        managed_worker_remove(alice, coordinator)
    long_ago = timezone.now() - timedelta(hours=1)
    WorkerNode.objects.update(seen_at=long_ago)
    node_make("annex")
    order = Order(ManagedWorker.Kind.TRAINER, 1, Placement(node="annex"))
    desk.post("/control/runs/demo/workers/coordinator/remove/")
    assert not ApiToken.objects.filter(scope="coordinator", revoked_at=None).exists()
    assert managed_workers_launch(alice, coordinator.run, order)[0] == ("coordinator")
    assert is_alive(pid, started_at), "its node knows nothing of that yet"
    node_look_task(is_home=True)
    assert not is_alive(pid, started_at)
    assert ManagedWorker.objects.get(kind="coordinator").node == "annex"


bounds = st.none() | st.integers(0, 20)
uses = st.builds(Use, *[st.integers(0, 12)] * 3)


@given(st.builds(Limits, bounds, bounds, bounds), uses, uses, st.booleans())
def test_what_fits_is_within_every_limit(
    limits: Limits, used: Use, wanted: Use, is_unbounded: bool
) -> None:
    refusal = room_refusal(limits, used, wanted, is_unbounded=is_unbounded)
    whole = used + wanted
    pairs = [
        (limits.processes, whole.processes),
        (limits.threads, whole.threads),
        (limits.memory_mb, whole.memory_mb),
    ]
    is_within = all(limit is None or total <= limit for limit, total in pairs)
    is_measured = limits.memory_mb is None or not is_unbounded
    assert (refusal == "") == (is_within and is_measured)


def test_secrets_never_leave_with_a_log() -> None:
    token = "by_" + "a1B2" * 8
    line = f"GET redis://:hunter2@host/0 Authorization: Bearer abc.def and {token}, own-secret"
    clean = log_clean(line, ("own-secret",))
    for secret in ("hunter2", "abc.def", token, "own-secret"):
        assert secret not in clean
    assert clean.startswith("GET redis://")
    assert log_clean("epoch 3 loss 2.1 http://127.0.0.1:8000/runs/x/") == (
        "epoch 3 loss 2.1 http://127.0.0.1:8000/runs/x/"
    )


@pytest.fixture
def desk(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_the_desk_shows_the_log_of_another_node_as_soon_as_it_answers(
    desk: Client, alice: User, program: Program
) -> None:
    node_make("annex")
    worker = managed_worker_create(
        alice, run_make(alice), "trainer", "trainer-1", Placement(node="annex")
    )
    page = "/control/runs/demo/workers/trainer-1/"
    folder = worker_folder(worker)
    folder.mkdir(parents=True)
    (folder / "token").write_text("by_" + "s" * 20)
    (folder / "output.log").write_text(f"home {folder}\nwith by_" + "s" * 20 + "\n")
    with patch.object(managed_worker_log_task, "apply_async") as ask:
        assert "annex is asked for the log" in desk.get(page).text
    assert ask.call_args.kwargs["queue"] == "node.annex"
    managed_worker_log_task(worker.pk)  # as node annex does
    answer = desk.get(page).text
    assert "with [secret]" in answer
    assert "by_sss" not in answer
    assert "home …/workers/demo/trainer-1" in answer, "folders are the machine's own business"
    WorkerNode.objects.update(left_at=timezone.now())
    ManagedWorker.objects.update(state="training", pid=1)
    answer = desk.get(page).text
    assert "Unknown" in answer
    assert "its node annex is away" in answer


def test_the_nodes_page_shows_limits_and_what_runs_in_a_bounded_number_of_queries(
    desk: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    run = run_make(alice)
    for number in range(6):
        node_make(f"node-{number}", devices=[{"device": "cuda:0", "name": "Big GPU"}])
        ManagedWorker.objects.create(
            run=run, kind="trainer", name=f"trainer-{number}", node=f"node-{number}"
        )
    with django_assert_max_num_queries(12):
        page = desk.get("/control/nodes/").text
    assert page.count("Big GPU") == 6
    assert "node.node-3" in page
    desk.post("/control/nodes/node-3/limits/", {"processes": "2", "threads": "", "memory_mb": ""})
    node = WorkerNode.objects.get(name="node-3")
    assert (node.max_processes, node.max_threads) == (2, None)
    entry = AuditEntry.objects.get(code="node.limits.set")
    assert entry.data["after"]["processes"] == 2


def test_only_a_node_that_is_gone_is_forgotten(alice: User) -> None:
    node, run = node_make("annex"), run_make(alice)
    ManagedWorker.objects.create(run=run, kind="trainer", name="t", node="annex")
    with pytest.raises(AppError, match="is alive"):
        node_forget(alice, node, timezone.now())
    node_forget(alice, node, timezone.now() + AWAY + AWAY)
    assert not WorkerNode.objects.exists()
    assert not ManagedWorker.objects.exists()
    assert node_rows(timezone.now()) == []
    assert Run.objects.exists()
