"""The heartbeat, receipts, and the status file."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.client.stand_in_site import (
    SLUG,
    Answer,
    Call,
    StandInSite,
    config_make,
    problem,
    receipt_make,
)
from training.client.errors import ClientError
from training.client.gate import Gate, gate_read
from training.client.heartbeat import Heartbeat, HeartbeatEvents
from training.client.join import Joiner
from training.client.status import StatusFile, status_is_alive, status_read
from training.protocol.api import PassRequest
from training.protocol.claims import Revocations
from training.protocol.config import ReportConfig
from training.protocol.envelope import peek_key_id
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.names import TYP_REVOCATIONS
from training.protocol.states import Command, CreditState, PeerState, Role

PASS = f"/api/v1/runs/{SLUG}/pass/"
RECEIPTS = f"/api/v1/runs/{SLUG}/receipts/"


class Told:
    """What the heartbeat told, with an event for each thing that may be waited for."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.versions: list[int] = []
        self.refusals: list[ClientError] = []
        self.lines: list[str] = []
        self.something = threading.Event()

    def events(self) -> HeartbeatEvents:
        def note(items: list[object]) -> object:
            return lambda item: (items.append(item), self.something.set())

        return HeartbeatEvents(
            progress=lambda: PassRequest(epoch=4, samples=96, state=PeerState.TRAINING),
            command=note(self.commands),  # type: ignore[arg-type]
            config=note(self.versions),  # type: ignore[arg-type]
            refused=note(self.refusals),  # type: ignore[arg-type]
            counted=note(self.lines),  # type: ignore[arg-type]
        )


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def heartbeat(site: StandInSite, joiner: Joiner, told: Told) -> Iterator[Heartbeat]:
    site.config = config_make(report=ReportConfig(heartbeat_seconds=0.05))
    made = Heartbeat(joiner, joiner.join(), told.events())
    yield made
    made.stop()


def wait_until(is_so: object, seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_beat_reports_progress_and_brings_a_fresh_pass(
    site: StandInSite, heartbeat: Heartbeat
) -> None:
    first = heartbeat.pass_token
    heartbeat.beat()
    assert heartbeat.pass_token != first
    (call,) = [call for call in site.calls if call.path == PASS]
    assert (call.body["epoch"], call.body["samples"]) == (4, 96)


def test_the_thread_hands_on_commands_and_newer_configs(
    site: StandInSite, heartbeat: Heartbeat, told: Told
) -> None:
    site.commands = ["pause"]
    site.config = site.config.model_copy(update={"version": 2})
    heartbeat.start()
    wait_until(lambda: told.commands and told.versions)
    assert (told.commands[0], told.versions[0]) == (Command.PAUSE, 2)


def test_a_ban_during_training_is_told_once_the_heart_beats(
    site: StandInSite, heartbeat: Heartbeat, told: Told
) -> None:
    site.banned = True
    heartbeat.start()
    wait_until(lambda: told.refusals)
    assert told.refusals[0].code == ErrorCode.BANNED


@pytest.fixture
def gated(site: StandInSite, joiner: Joiner, told: Told) -> Iterator[tuple[Heartbeat, Gate]]:
    site.config = config_make(report=ReportConfig(heartbeat_seconds=0.05))
    admission = joiner.join()
    gate = Gate(
        joiner.folder,
        config=site.config,
        keys=admission.trust.keys,
        peer_pass=admission.peer_pass.token,
        clock=joiner.client.clock,
    )
    made = Heartbeat(joiner, admission, told.events(), gate=gate)
    yield made, gate
    made.stop()


def test_the_swarms_gate_is_told_of_the_fresh_pass_and_of_who_is_shut_out(
    site: StandInSite, gated: tuple[Heartbeat, Gate]
) -> None:
    heartbeat, gate = gated
    body = Revocations(run=SLUG, seq=5, peer_ids=("QmMallory",))
    site.revocations = site.sign(body, TYP_REVOCATIONS)
    heartbeat.beat()
    found = gate_read(gate.path).view
    assert found.own_pass == heartbeat.pass_token
    assert (found.revoked, found.revocations_seq) == ({"QmMallory"}, 5)


def test_inside_the_swarm_a_new_key_of_the_site_is_known_at_once_and_a_leaked_one_left_soon(
    site: StandInSite, gated: tuple[Heartbeat, Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat, gate = gated
    site.rotate(vouch=True)
    new, old = (key.thumbprint() for key in site.keys)

    def known() -> set[str]:
        return {key.thumbprint() for key in gate_read(gate.path).view.keys}

    heartbeat.beat()
    assert known() == {new, old}
    site.keys = site.keys[:1]
    heartbeat.beat()
    assert known() == {new, old}, "nothing that the site signs tells of it"
    monkeypatch.setattr("training.client.heartbeat._KEYS_SECONDS", 0.1)
    heartbeat.start()
    wait_until(lambda: known() == {new})
    assert peek_key_id(gate_read(gate.path).view.own_pass) == new


@pytest.mark.parametrize("answer", [Answer(502, b"<html>"), Answer(200, b"nonsense")])
def test_a_site_that_is_away_does_not_end_the_training(
    site: StandInSite, heartbeat: Heartbeat, told: Told, answer: Answer
) -> None:
    site.overrides[PASS] = lambda call: answer
    heartbeat.start()
    wait_until(lambda: site.paths().count(PASS) >= 3)
    assert told.refusals == []
    site.overrides.clear()
    first = heartbeat.pass_token
    wait_until(lambda: heartbeat.pass_token != first)


def test_an_unforeseen_error_does_not_end_the_heartbeat(
    site: StandInSite, joiner: Joiner, told: Told
) -> None:
    site.config = config_make(report=ReportConfig(heartbeat_seconds=0.05))
    events = told.events()
    broken = HeartbeatEvents(
        progress=events.progress,
        command=lambda command: [][1],
        config=events.config,
        refused=events.refused,
        counted=events.counted,
    )
    site.commands = ["pause"]
    heartbeat = Heartbeat(joiner, joiner.join(), broken)
    heartbeat.start()
    wait_until(lambda: site.paths().count(PASS) >= 3)
    heartbeat.stop()


def test_a_pass_with_a_vouched_new_key_is_taken(site: StandInSite, heartbeat: Heartbeat) -> None:
    site.rotate(vouch=True)
    heartbeat.beat()
    site.keys = [key_generate()]
    with pytest.raises(ClientError) as caught:
        heartbeat.beat()
    assert caught.value.code == ErrorCode.UNKNOWN_KEY


def test_new_entrances_replace_the_old_ones(site: StandInSite, heartbeat: Heartbeat) -> None:
    addresses = ["/ip4/127.0.0.1/tcp/4001/p2p/QmNew"]

    def answer(call: Call) -> Answer:
        site.overrides.clear()
        usual = site.answer(call)
        return Answer(body=usual.body | {"bootstrap_peers": addresses})

    site.overrides[PASS] = answer
    heartbeat.beat()
    heartbeat.beat()
    assert heartbeat.bootstrap_peers == tuple(addresses)


def test_receipts_are_told_once_and_kept_as_proof(
    site: StandInSite, heartbeat: Heartbeat, joiner: Joiner
) -> None:
    site.receipts = [receipt_make(1, 100)]
    reader = heartbeat._receipts
    assert reader.fetch() == []
    later = receipt_make(3, 64, state=CreditState.REJECTED, reason="no such epoch")
    site.receipts = [later, receipt_make(2, 1512), receipt_make(1, 100)]
    assert reader.fetch() == [
        "counted: 1,512 samples (epoch 2)",
        "not counted: 64 samples (epoch 3): no such epoch",
    ]
    assert reader.fetch() == []
    names = sorted(path.name for path in (joiner.folder / "receipts").iterdir())
    assert names == [f"1-{epoch:08d}.jws" for epoch in (1, 2, 3)]


def test_a_provisional_receipt_that_is_confirmed_is_not_told_twice_but_a_rejection_is(
    site: StandInSite, heartbeat: Heartbeat
) -> None:
    reader = heartbeat._receipts
    reader.fetch()
    told = []
    for state in (CreditState.PROVISIONAL, CreditState.CONFIRMED, CreditState.REJECTED):
        site.receipts = [receipt_make(1, 8, state=state, reason="checked")]
        told.append(len(reader.fetch()))
    assert told == [1, 0, 1]


def test_a_receipt_that_the_site_did_not_sign_is_not_believed(
    site: StandInSite, heartbeat: Heartbeat, joiner: Joiner
) -> None:
    reader = heartbeat._receipts
    reader.fetch()
    item = {"epoch": 5, "samples": 9, "state": "confirmed", "reason": "", "jws": "x.y.z"}
    site.overrides[RECEIPTS] = lambda call: Answer(body={"items": [item]})
    (line,) = reader.fetch()
    assert "badly signed" in line
    assert not (joiner.folder / "receipts").exists()


def test_a_refused_receipt_call_leaves_the_training_alone(
    site: StandInSite, heartbeat: Heartbeat, told: Told
) -> None:
    site.overrides[RECEIPTS] = lambda call: problem(ErrorCode.INTERNAL_ERROR)
    heartbeat.start()
    wait_until(lambda: PASS in site.paths())
    assert told.refusals == []


def test_the_status_file_says_what_runs_and_what_failed(tmp_path: Path) -> None:
    status = StatusFile(tmp_path, role=Role.TRAINER, peer_id="QmMe")
    status.start()
    status.update(phase="training", epoch=5, loss=2.5)
    status.fail(ClientError("swarm_lost", "the swarm is away", "Wait.", exit_code=4))  # type: ignore[arg-type]
    status.stop()
    kept = status_read(status.path)
    assert kept is not None
    assert (kept.pid, kept.phase, kept.epoch, kept.peer_id) == (os.getpid(), "training", 5, "QmMe")
    assert kept.error is not None
    assert kept.error.remedy == "Wait."
    assert status_is_alive(kept)
    status.path.write_text("{")
    assert status_read(status.path) is None


def test_a_pid_that_another_process_got_later_is_not_ours(tmp_path: Path) -> None:
    status = StatusFile(tmp_path, role=Role.TRAINER).status
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    hours_ago = datetime.now(UTC) - timedelta(hours=2)
    reused = status.model_copy(update={"pid": other.pid, "started_at": hours_ago})
    assert not status_is_alive(reused)
    other.kill()
    other.wait()
    assert not status_is_alive(status.model_copy(update={"pid": other.pid}))
