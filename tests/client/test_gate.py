"""What a device knows of its swarm's gate: kept on disk, private, newest list wins."""

import json
import logging
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from training.client.clock import SiteClock
from training.client.errors import ClientError, ExitCode
from training.client.gate import Gate, gate_read
from training.client.refusals import refusal_error, refusal_of
from training.protocol.admission import AdmissionAnswer, Verdict
from training.protocol.claims import PeerPass, Revocations
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.names import TYP_PASS, TYP_REVOCATIONS
from training.protocol.states import Role

CONFIG = RunConfig(run="demo", title="Demo", version=1, task=TaskConfig(name="tiny"))
OLD, NEW = key_generate(), key_generate()


class Wall:
    """A clock to set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 7, 1, tzinfo=UTC)

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture
def wall() -> Wall:
    return Wall()


def pass_make(wall: Wall, key: OKPKey = OLD, sub: str = "bob") -> str:
    body = PeerPass(
        sub=sub,
        device="d",
        run="demo",
        lineage=1,
        peer_id="QmBob",
        key_thumbprint="0" * 64,
        role=Role.TRAINER,
    )
    half_hour = timedelta(minutes=30)
    return sign(body, typ=TYP_PASS, key=key, issuer="x", lifetime=half_hour, now=wall.now)


def list_make(
    seq: int, *peer_ids: str, key: OKPKey = OLD, run: str = "demo", hours: int = 0
) -> str:
    body = Revocations(run=run, seq=seq, peer_ids=peer_ids)
    now = datetime(2026, 7, 1, hours, tzinfo=UTC)
    day = timedelta(days=1)
    return sign(body, typ=TYP_REVOCATIONS, key=key, issuer="x", lifetime=day, now=now)


def gate_make(folder: Path, wall: Wall) -> Gate:
    token = pass_make(wall)
    clock = SiteClock(wall=wall)
    return Gate(folder, config=CONFIG, keys=[OLD], peer_pass=token, clock=clock)


def test_other_processes_read_what_the_heartbeat_brought(tmp_path: Path, wall: Wall) -> None:
    gate = gate_make(tmp_path, wall)
    assert gate.changed.is_set()
    fresh = pass_make(wall, sub="bobby")
    gate.heard(peer_pass=fresh, keys=[OLD, NEW], revocations=list_make(4, "QmMallory"))
    record = gate_read(gate.path)
    assert record.view.own_pass == fresh
    assert record.view.revoked == {"QmMallory"}
    assert record.view.revocations_seq == 4
    assert record.view.contact_at == wall.now
    assert [k.thumbprint() for k in record.view.keys] == [OLD.thumbprint(), NEW.thumbprint()]
    assert stat.S_IMODE(gate.path.stat().st_mode) == 0o600


def test_a_ban_survives_a_restart_and_older_lists(tmp_path: Path, wall: Wall) -> None:
    gate = gate_make(tmp_path, wall)
    assert gate.revocations_take(list_make(7, "QmMallory"))
    again = gate_make(tmp_path, wall)
    assert again.view.revoked == {"QmMallory"}
    assert not again.revocations_take(list_make(6))
    assert not again.revocations_take(list_make(7))
    assert again.view.revoked == {"QmMallory"}
    assert again.revocations_take(list_make(8))
    assert again.view.revoked == frozenset()


@given(order=st.permutations([1, 2, 3, 4, 5]))
def test_whatever_the_order_the_largest_number_wins(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    gate = gate_make(tmp_path_factory.mktemp("gate"), Wall())
    for seq in order:
        gate.revocations_take(list_make(seq, f"Qm{seq}"))
    assert gate.view.revoked == {"Qm5"}


@pytest.mark.parametrize(
    "token", ["nonsense", "", list_make(9, "Qm", key=NEW), list_make(9, "Qm", run="other")]
)
def test_a_list_of_somebody_else_changes_nothing(tmp_path: Path, wall: Wall, token: str) -> None:
    gate = gate_make(tmp_path, wall)
    assert not gate.revocations_take(token)
    assert gate.view.revocations_seq == 0


def test_a_list_that_was_signed_anew_replaces_its_copy_and_not_the_other_way(
    tmp_path: Path, wall: Wall
) -> None:
    gate, first = gate_make(tmp_path, wall), list_make(3, "QmMallory")
    assert gate.revocations_take(first)
    again = list_make(3, "QmMallory", hours=2)
    assert gate.revocations_take(again)
    assert not gate.revocations_take(first)
    assert gate.revocations == again


def test_a_ban_outlives_the_key_that_signed_it(tmp_path: Path, wall: Wall) -> None:
    gate = gate_make(tmp_path, wall)
    gate.heard(peer_pass=pass_make(wall), revocations=list_make(3, "QmMallory"))
    gate.heard(peer_pass=pass_make(wall, NEW), keys=[NEW])
    assert gate.view.revoked == gate_read(gate.path).view.revoked == {"QmMallory"}
    again = Gate(tmp_path, config=CONFIG, keys=[NEW], peer_pass="", clock=SiteClock(wall=wall))
    assert again.view.revoked == {"QmMallory"}
    resigned = list_make(3, "QmMallory", key=NEW)
    gate.heard(peer_pass=pass_make(wall, NEW), revocations=resigned)
    assert gate.revocations == resigned


def test_a_list_by_a_leaked_key_gives_way_to_any_list_of_the_site(
    tmp_path: Path, wall: Wall
) -> None:
    gate = gate_make(tmp_path, wall)
    assert gate.revocations_take(list_make(10**15, "QmAlice", "QmBob"))
    honest = list_make(4, "QmMallory", key=NEW)
    gate.heard(peer_pass=pass_make(wall, NEW), keys=[NEW], revocations=honest)
    assert gate.view.revoked == {"QmMallory"}
    assert gate.view.revocations_seq == 4
    assert not gate.revocations_take(list_make(10**15, "QmAlice"))


def test_a_pass_by_a_new_key_waits_until_all_know_that_key(tmp_path: Path, wall: Wall) -> None:
    gate = gate_make(tmp_path, wall)
    first = gate.view.own_pass
    for seconds in (30, 30, 30):
        gate.heard(peer_pass=pass_make(wall, NEW), keys=[OLD, NEW])
        assert gate.view.own_pass == first
        wall.now += timedelta(seconds=seconds)
    fresh = pass_make(wall, NEW)
    gate.heard(peer_pass=fresh)
    assert gate.view.own_pass == fresh


def test_a_pass_by_a_new_key_does_not_wait_when_the_old_one_is_at_its_end(
    tmp_path: Path, wall: Wall
) -> None:
    gate = gate_make(tmp_path, wall)
    wall.now += timedelta(minutes=29)
    fresh = pass_make(wall, NEW)
    gate.heard(peer_pass=fresh, keys=[OLD, NEW])
    assert gate.view.own_pass == fresh


def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, wall: Wall) -> None:
    gate = gate_make(tmp_path, wall)
    data = json.loads(gate.path.read_text())
    bad = [data | {"keys": [{}]}, data | {"revoked": 4}, data | {"revocations_seq": "many"}]
    for text in ("{", "{}", *map(json.dumps, bad)):
        gate.path.write_text(text)
        with pytest.raises(ClientError) as caught:
            gate_read(gate.path)
        assert caught.value.remedy
    gate_make(tmp_path, wall)
    assert gate_read(gate.path).view.revocations_seq == 0


def test_no_pass_is_in_the_log(
    tmp_path: Path, wall: Wall, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    gate = gate_make(tmp_path, wall)
    gate.heard(peer_pass=pass_make(wall), revocations=list_make(1, "QmMallory"))
    gate.revocations_take("nonsense")
    assert "revocation list 1, 1 peers" in caplog.text
    assert gate.view.own_pass.split(".")[2] not in caplog.text


def test_the_swarms_refusals_are_told_with_code_remedy_and_exit_code() -> None:
    for verdict in set(Verdict) - {Verdict.ADMITTED}:
        error = refusal_error(verdict)
        assert error.code == verdict.value
        assert error.remedy
        assert error.exit_code in (ExitCode.NOT_ALLOWED, ExitCode.BAD_SIGNATURE)
    answer = AdmissionAnswer(verdict=Verdict.CLOCK_OFF, now=1042.0)
    clock = refusal_of(answer, now=1000.0)
    assert clock is not None
    assert clock.detail == "the swarm refuses this peer: its clock is 42 s behind it"
    assert refusal_of(None, now=0) is None
    assert refusal_of(AdmissionAnswer(verdict=Verdict.ADMITTED, now=0), now=0) is None
