"""An auxiliary peer from the desk's form to the trainers' rounds, and back out."""

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.installation import ROOT, Installation, Person, free_port, wait_for
from tests.e2e.test_f_nodes import addresses, clean, state_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
MAKE_RUN = """
from web.accounts.models import User
from web.runs.services import run_config_publish, run_create, run_transition
organiser = User.objects.get(username="organiser")
run = run_create(organiser, slug="trio", title="Trio", summary="For tests.")
run_config_publish(organiser, run, {
    "task": {"name": "tiny", "params": {"features": 256, "hidden": 1024}},
    "optimizer": {"name": "sgd", "learning_rate": 0.05},
    "swarm": {"target_batch_size": 120000, "min_peers": 2, "matchmaking_seconds": 8},
})
run_transition(organiser, run, "open")
"""


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    site = Installation(tmp_path_factory.mktemp("trio") / "data", free_port())
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
        print(site.log()[-2000:])  # noqa: T201 - shown by pytest when a test fails


def log_of(site: Installation, name: str) -> str:
    path = site.data / "workers" / "trio" / name / "output.log"
    return path.read_text() if path.exists() else ""


def credited(site: Installation, name: str) -> int:
    rows = site.rows(
        "select coalesce(sum(samples), 0) from contributions_ledgerentry as entry "
        "join accounts_device as device on device.id = entry.device_id where device.name = ?",
        name,
    )
    return int(str(rows[0][0]))


def test_an_auxiliary_peer_of_the_desk_averages_for_two_trainers_and_is_credited_nothing(
    trio: Installation,
) -> None:
    with Person(trio, **trio.organiser()) as organiser:
        organiser.log_in()
        page, launch = "/control/runs/trio/", "/control/runs/trio/workers/launch/"
        for kind, count in (("trainer", "2"), ("auxiliary", "1")):
            organiser.post(launch, page, kind=kind, count=count, threads="1")
        wait_for("the helper", lambda: state_of(trio, "auxiliary-1") == "training", 200)
        told = "averaged by 3"
        wait_for("rounds of three", lambda: log_of(trio, "auxiliary-1").count(told) >= 3, 480)
        assert told in log_of(trio, "trainer-1")
        wait_for("credit for trainers", lambda: credited(trio, "trainer-1") > 0, 120)
        assert credited(trio, "auxiliary-1") == 0
        peers = httpx.get(trio.run_url.replace("python-docs", "trio")).text
        assert 'data-cell="role">auxiliary<' in peers
        organiser.post("/control/runs/trio/workers/auxiliary-1/stop/", page)
        wait_for("its leaving", lambda: state_of(trio, "auxiliary-1") == "stopped", 60)
        assert not trio.processes("trio/auxiliary-1")
        assert "Leaving well" in log_of(trio, "auxiliary-1")
