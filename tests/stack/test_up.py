"""The command that starts a site: it comes up, refuses to come up twice, and leaves nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.installation import ROOT, Installation, Person, free_port, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
PROGRAMS = {"supervisord", "redis", "web", "celery", "beat"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Installation]:
    """A site without a demo run."""
    installation = Installation(tmp_path / "data", free_port())
    installation.extra_env["BEEYARD_DEMO"] = "0"
    yield installation
    process = installation.process
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()
    for left in installation.processes():
        left.kill()
    print(installation.log())  # noqa: T201 - shown when a test fails


def come_up(site: Installation) -> None:
    site.start()
    wait_for("the site", lambda: site.get("/readyz"), 90)


def names(site: Installation) -> set[str]:
    return {process.environ()["BEEYARD_PROCESS"] for process in site.processes()}


def up_again(site: Installation, *flags: str) -> "subprocess.CompletedProcess[str]":
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BEEYARD_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", "up", "--no-demo", *flags],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_site_comes_up_once_and_leaves_nothing(site: Installation, tmp_path: Path) -> None:
    come_up(site)
    assert names(site) == PROGRAMS
    login = site.organiser()
    with Person(site, login["username"], login["password"]) as organiser:
        organiser.log_in()
    assert (site.data / "organiser.json").stat().st_mode & 0o777 == 0o600
    assert all("requirepass" not in " ".join(p.cmdline()) for p in site.processes())

    twice = up_again(site, "--data", str(site.data), "--port", str(free_port()))
    assert twice.returncode == 1
    assert f"A site already runs on {site.data}" in twice.stdout
    taken = up_again(site, "--data", str(tmp_path / "other"), "--port", str(site.port))
    assert taken.returncode == 1
    assert f"Port {site.port} is in use" in taken.stdout
    assert names(site) == PROGRAMS, "the refused starts changed nothing"

    assert site.stop() == 0
    assert not site.processes()
    with pytest.raises(httpx.ConnectError):
        site.get("/healthz")


def test_what_a_killed_start_left_is_ended_by_the_next(site: Installation) -> None:
    come_up(site)
    before = pids(site)
    assert site.process is not None
    site.process.kill()
    site.process.wait()
    assert site.processes(), "the site lives on without the command"
    site.start()
    wait_for("the end of the old one", lambda: not before & pids(site), 60)
    wait_for("the new site", lambda: site.get("/readyz"), 90)
    assert "Ending" in site.log()
    assert site.stop() == 0
    assert not site.processes()


def test_a_second_interruption_stops_at_once(site: Installation) -> None:
    come_up(site)
    assert site.process is not None
    for process in site.processes("celery"):
        process.send_signal(signal.SIGSTOP)  # the orderly way would wait for it
    site.process.send_signal(signal.SIGINT)
    wait_for("the first answer", lambda: "Stopping;" in site.log(), 20)
    site.process.send_signal(signal.SIGINT)
    site.process.wait(15)
    assert "Stopping at once." in site.log()
    assert not site.processes()


def test_a_killed_leader_of_celery_leaves_no_second_one(site: Installation) -> None:
    come_up(site)

    def leader() -> psutil.Process | None:
        supervisord = site.processes("supervisord")[0]
        children = [p for p in supervisord.children() if p.pid in pids(site, "celery")]
        return children[0] if children else None

    first = leader()
    assert first is not None
    old = pids(site, "celery")
    first.kill()
    wait_for("a new celery", lambda: pids(site, "celery") - old, 60)
    wait_for("the end of the old one", lambda: not pids(site, "celery") & old, 60)
    assert site.stop() == 0


def pids(site: Installation, name: str = "") -> set[int]:
    return {process.pid for process in site.processes(name)}
