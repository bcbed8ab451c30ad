"""Page → signed config → trainer → swarm → signed metrics → coordinator → database → websocket."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.e2e.installation import ROOT, RUN, Installation, Person, wait_for
from training.protocol.config import RunConfig
from training.protocol.envelope import verify
from training.protocol.keys import key_load
from training.protocol.names import TYP_CONFIG
from web.monitoring.livestate import state_apply

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]


def test_the_first_epoch_is_on_the_page_soon_after_the_start(training_site: Installation) -> None:
    state = training_site.state()
    assert state["epoch"] >= 1
    assert state["loss"] is not None
    assert state["num_peers"] >= 1
    assert RUN in httpx.get(training_site.url).text
    page = httpx.get(training_site.run_url).text
    assert "<script" in page
    assert f'data-seq="{state["seq"]}"' in page or "data-seq" in page


def test_the_config_carries_the_signature_of_the_site(training_site: Installation) -> None:
    keys = [key_load(jwk) for jwk in training_site.get("/api/v1/keys/")["keys"]]
    config = training_site.get(f"/api/v1/runs/{RUN}/config/")
    signed = verify(
        config["jws"], typ=TYP_CONFIG, model=RunConfig, keys=keys, now=datetime.now(UTC)
    )
    assert signed.body.run == RUN
    assert signed.body.task.name == "albert"
    tokenizer = next(a for a in signed.body.artifacts if "tokenizer" in a.name)
    answer = httpx.get(f"{training_site.url}/api/v1/artifacts/{tokenizer.sha256}/")
    assert len(answer.content) == tokenizer.size


def test_snapshot_and_patches_together_are_the_state(training_site: Installation) -> None:
    address = f"ws://127.0.0.1:{training_site.port}/ws/runs/{RUN}/"
    origin: Any = training_site.url
    with connect(address, origin=origin) as socket:
        first = json.loads(socket.recv(timeout=20))
        assert first["type"] == "run.snapshot"
        state, seq = first["state"], first["seq"]
        deadline, patches = time.monotonic() + 40, 0
        while patches < 3 and time.monotonic() < deadline:
            message = json.loads(socket.recv(timeout=40))
            assert message["seq"] > seq or message["type"] == "run.event"
            seq = max(seq, message["seq"])
            if message["type"] == "run.patch":
                state = state_apply(state, message["patch"])
                patches += 1
    assert patches == 3
    assert state["epoch"] >= first["state"]["epoch"]
    with connect(f"{address}?since={seq}", origin=origin) as socket:
        assert json.loads(socket.recv(timeout=40))["type"] in ("run.patch", "run.event")


@pytest.fixture(scope="module")
def bob(training_site: Installation) -> Iterator[Person]:
    with Person(training_site, "bob", "correct-horse-battery") as person:
        person.sign_up()
        yield person


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Bob reads in his terminal."""
    return tmp_path_factory.mktemp("bob") / "terminal.log"


@pytest.fixture(scope="module")
def volunteer(
    training_site: Installation, bob: Person, terminal: Path
) -> Iterator["subprocess.Popen[str]"]:
    """Bob's machine: the command of the join page, with the code confirmed in his browser."""
    folder, log = terminal.parent, terminal
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BEEYARD_")}
    command = [sys.executable, "-m", "training", "join", training_site.run_url, "--plain"]
    command += ["--home", str(folder / "home"), "--name", "bobs-laptop", "--threads", "1"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
    code = wait_for("the device code", lambda: user_code(log), 60)
    confirm(bob, code)
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    print(log.read_text()[-3000:])  # noqa: T201


def user_code(log: Path) -> str | None:
    found = re.search(r"\b([A-Z0-9]{4,}-[A-Z0-9]{4,})\b", log.read_text())
    return found[1] if found else None


def confirm(person: Person, code: str) -> None:
    answer = person.http.get("/identity/o/device", params={"code": code})
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text)
    assert token, answer.text
    fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', answer.text))
    fields |= {"csrfmiddlewaretoken": token[1], "action": "confirm"}
    headers = {"Referer": str(answer.url)}
    address = f"/identity/o/device?code={code}"
    done = person.http.post(address, data=fields, headers=headers)
    assert done.status_code == 200, done.text
    assert "back to your terminal" in done.text, "the code was not confirmed"


def test_a_volunteer_who_starts_to_train_is_on_the_page_within_ten_seconds(
    training_site: Installation, volunteer: "subprocess.Popen[str]", terminal: Path
) -> None:
    def mine() -> dict[str, Any] | None:
        peers = training_site.state()["peers"].values()
        return next((p for p in peers if p["name"] == "bob" and p["state"] == "training"), None)

    wait_for("training in Bob's terminal", lambda: "\ntraining\n" in terminal.read_text(), 120)
    peer = wait_for("bob among the training peers", mine, 10)
    assert peer["verified"]
    assert not peer["managed"]
    assert volunteer.poll() is None


def test_the_volunteers_samples_are_counted_and_ranked(
    training_site: Installation, volunteer: "subprocess.Popen[str]", bob: Person
) -> None:
    def row() -> dict[str, Any] | None:
        board = training_site.get(f"/api/v1/runs/{RUN}/leaderboard/?period=all")
        return next((r for r in board["items"] if r["user"] == "bob"), None)

    counted = wait_for("bob on the board", row, 180)
    assert counted["samples"] > 0
    assert "bob" in httpx.get(training_site.run_url).text
    own = bob.http.get("/api/v1/me/devices/").json()
    assert [d["name"] for d in own["items"]] == ["bobs-laptop"]


def test_the_volunteer_leaves_well_and_keeps_the_credit(
    training_site: Installation, volunteer: "subprocess.Popen[str]"
) -> None:
    before = sum(training_site.ledger().values())
    volunteer.send_signal(signal.SIGINT)
    assert volunteer.wait(30) == 0
    group = [p for p in training_site.processes() if os.getpgid(p.pid) == volunteer.pid]
    assert not group
    assert sum(training_site.ledger().values()) >= before


def test_no_address_of_a_peer_is_public(training_site: Installation) -> None:
    for path in (f"/runs/{RUN}/", f"/api/v1/runs/{RUN}/state/", f"/api/v1/runs/{RUN}/"):
        text = httpx.get(training_site.url + path).text
        assert "/ip4/" not in text
        assert "/p2p/" not in text
