"""Celery's schedule names tasks that exist; its worker survives the loss of Redis."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers import port_free, redis_start
from web.project.celery import app
from web.project.stack.programs import programs
from web.workers.processes import wait_until

ROOT = Path(__file__).parents[2]


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled <= set(app.tasks), scheduled - set(app.tasks)
    assert "web.workers.tasks.node_look_task" in app.tasks, "each node asks itself for it"


def test_every_route_leads_to_a_consumed_queue() -> None:
    command = next(p.command for p in programs(None) if p.name == "celery")
    consumed = set(command[command.index("--queues") + 1].split(","))
    routes = [app.amqp.router.route({}, name)["queue"].name for name in app.tasks]
    assert {*routes, "launch", "node.site"} <= consumed
    launch = app.amqp.router.route({}, "web.workers.tasks.managed_worker_reconcile_task")
    assert launch["queue"].name == "launch"


@pytest.mark.redis
def test_a_worker_goes_on_after_redis_was_killed_and_started_again(tmp_path: Path) -> None:
    port, password = port_free(), secrets.token_hex(8)
    server = redis_start(tmp_path, port, password)
    environment = os.environ | {
        "BEEYARD_DATA": str(tmp_path / "data"),
        "REDIS_URL": f"redis://:{password}@127.0.0.1:{port}/0",
        "DJANGO_SETTINGS_MODULE": "web.project.settings",
    }
    base = [sys.executable, "-m", "celery", "-A", "web.project.celery:app"]
    log = tmp_path / "celery.log"
    command = [*base, "worker", "-Q", "default", "-c", "1", "--without-gossip", "--without-mingle"]
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [*command, "--loglevel", "INFO"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )

    def pulses() -> int:
        return log.read_text().count("succeeded in")

    def pulse_sent_and_done() -> bool:
        wanted = pulses() + 1
        call = [*base, "call", "web.core.tasks.pulse_task"]
        subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, check=False)
        return wait_until(lambda: pulses() >= wanted, 5)

    try:
        assert wait_until(pulse_sent_and_done, 60), log.read_text()[-2000:]
        server.kill()
        server.wait()
        time.sleep(2)
        server = redis_start(tmp_path, port, password)
        assert wait_until(pulse_sent_and_done, 60), log.read_text()[-2000:]
    finally:
        worker.terminate()
        worker.wait(30)
        server.kill()
        server.wait()
