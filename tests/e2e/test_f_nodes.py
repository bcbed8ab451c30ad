"""A second node beside a site: its own folder and queue, and only Redis to go by."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.installation import ROOT, Installation, Person, free_port, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
MAKE_RUN = """
from web.accounts.models import User
from web.runs.services import run_config_publish, run_create, run_transition
organiser = User.objects.get(username="organiser")
run = run_create(organiser, slug="small", title="Small", summary="For tests.")
run_config_publish(organiser, run, {
    "task": {"name": "tiny", "params": {"hidden": 8}},
    "optimizer": {"name": "sgd", "learning_rate": 0.1},
    "checkpoint": {"every_epochs": 1, "keep": 2},
    "evaluation": {"automatic": True, "samples": 64},
    "swarm": {"target_batch_size": 2048, "min_peers": 1, "matchmaking_seconds": 1.5},
})
run_transition(organiser, run, "open")
"""


@dataclass
class Node:
    """``manage.py node`` with nothing of the site's but the address of its Redis."""

    site: Installation
    data: Path
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        redis = addresses(self.site)["REDIS_URL"]
        own = {"BEEYARD_NODE": "annex", "BEEYARD_DATA": str(self.data), "REDIS_URL": redis}
        with (self.data.parent / "node.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "node"],
                cwd=ROOT, env=clean() | own, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, text=True,
            )  # fmt: skip

    def log(self) -> str:
        return (self.data.parent / "node.log").read_text()

    def processes(self, mark: str = "") -> list[psutil.Process]:
        return Installation(self.data, 0).processes(mark)

    def kill(self) -> None:
        """End the node and its celery as a crash would; its managed workers go on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        for process in self.processes("celery"):
            process.kill()


def clean() -> dict[str, str]:
    """Return an environment that knows of no other site, and not of these tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("BEEYARD_", "DJANGO_"))}


def addresses(site: Installation) -> dict[str, str]:
    """Return how the site's Redis and database are reached."""
    config = (site.data / "run" / "redis" / "redis.conf").read_text()
    port, password = (re.search(rf"^{n} (.+)$", config, re.M) for n in ("port", "requirepass"))
    assert port
    assert password
    return {
        "REDIS_URL": f"redis://:{password[1]}@127.0.0.1:{port[1]}/0",
        "DATABASE_URL": f"sqlite:///{site.data / 'db.sqlite3'}",
    }


@pytest.fixture(scope="module")
def own_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    site = Installation(tmp_path_factory.mktemp("bare") / "data", free_port())
    site.extra_env = {"BEEYARD_DEMO": "0"}
    site.start()
    try:
        wait_for("the site's first answer", lambda: site.get("/healthz"), 90)
        command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", MAKE_RUN]
        own = {"BEEYARD_DATA": str(site.data), "BEEYARD_PORT": str(site.port)}
        subprocess.run(command, cwd=ROOT, env=clean() | own | addresses(site), check=True)
        yield site
    finally:
        if site.process is not None and site.process.poll() is None:
            site.stop()
        for process in site.processes():
            process.kill()
        print(site.log()[-2000:])  # noqa: T201


@pytest.fixture(scope="module")
def node(own_site: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(own_site, tmp_path_factory.mktemp("annex") / "data")
    node.start()
    yield node
    for process in node.processes():
        process.kill()
    if node.process is not None and node.process.poll() is None:
        node.process.kill()
    print(node.log()[-2000:])  # noqa: T201


@pytest.fixture(scope="module")
def organiser(own_site: Installation) -> Iterator[Person]:
    with Person(own_site, **own_site.organiser()) as person:
        person.log_in()
        yield person


def state_of(site: Installation, name: str) -> str:
    rows = site.rows("select state from workers_managedworker where name = ?", name)
    return str(rows[0][0]) if rows else ""


def test_a_trainer_runs_on_the_second_node_and_its_log_is_read_at_the_desk(
    own_site: Installation, node: Node, organiser: Person
) -> None:
    def is_here() -> bool:
        text = organiser.http.get("/control/nodes/").text
        return "node.annex" in text and text.count("Here") == 2

    wait_for("both nodes' first words", is_here, 60)
    launch = "/control/runs/small/workers/launch/"
    page = "/control/runs/small/"
    organiser.post(launch, page, kind="coordinator", count="1", node="site", threads="1")
    organiser.post(launch, page, kind="trainer", count="1", node="annex", threads="1", hours="1")
    wait_for("training", lambda: state_of(own_site, "trainer-1") == "training", 200)
    mark = "small/trainer-1"
    assert node.processes(mark), "the trainer is a process of the second node"
    assert not own_site.processes(mark)
    assert own_site.processes("small/coordinator")
    assert not node.processes("small/coordinator")
    worker = "/control/runs/small/workers/trainer-1/"
    token = (node.data / "workers" / mark / "token").read_text().strip()

    def log_seen() -> str | None:
        text = organiser.http.get(f"{worker}now/").text
        return text if "joined Small" in text else None

    assert token not in wait_for("the log from the other node", log_seen, 20)


def test_saved_states_are_evaluated_by_themselves_where_the_coordinator_keeps_them(
    own_site: Installation, node: Node
) -> None:
    def done() -> dict[str, object] | None:
        items = own_site.get("/api/v1/runs/small/evaluations/")["items"]
        assert not [item for item in items if item["state"] == "failed"], items
        return next((item for item in items if item["state"] == "done"), None)

    found = wait_for("an evaluation", done, 200)
    assert found["num_samples"] == 64
    assert set(found["metrics"]) == {"loss", "accuracy"}  # type: ignore[call-overload]
    page = own_site.run_url.replace("python-docs", "small")
    assert "What the model can do" in httpx.get(page).text


def test_a_node_that_vanished_is_shown_and_adopts_its_trainer_when_it_is_back(
    own_site: Installation, node: Node, organiser: Person
) -> None:
    pid = own_site.worker_pid("trainer-1")
    node.kill()
    worker = "/control/runs/small/workers/trainer-1/"
    text = "its node annex is away"
    wait_for("the word unknown", lambda: text in organiser.http.get(worker).text, 60)
    assert psutil.pid_exists(pid or 0), "the trainer needs no celery to go on"
    node.start()
    wait_for("the node", lambda: text not in organiser.http.get(worker).text, 60)
    assert own_site.worker_pid("trainer-1") == pid
    assert state_of(own_site, "trainer-1") == "training"


def test_a_node_that_stops_in_order_leaves_no_process_and_the_site_goes_on(
    own_site: Installation, node: Node, organiser: Person
) -> None:
    assert node.process is not None
    node.process.send_signal(signal.SIGINT)
    assert node.process.wait(60) == 0, node.log()
    assert not node.processes()
    assert state_of(own_site, "trainer-1") == "stopped"
    assert "Stopped" in organiser.http.get("/control/nodes/").text
    assert own_site.processes("small/coordinator")
