"""The gate of one process: cheap, bounded, and deaf to nobody's ban."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import DHTRecord
from hivemind.p2p import PeerID
from hivemind.proto.auth_pb2 import AccessToken
from hivemind.proto.dht_pb2 import PingRequest

from tests.swarm.peers import config_make
from tests.swarm.stand_in_passes import PassOffice
from training.client.clock import SiteClock
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.admission import AdmissionQuestion, Verdict
from training.protocol.gate import pass_open
from training.protocol.names import members_key, revocations_key
from training.swarm import doorman as doorman_module
from training.swarm import gatekeeper as gatekeeper_module
from training.swarm.admission import AskLimit, answer_of
from training.swarm.authorizer import PassAuthorizer
from training.swarm.clock import swarm_time
from training.swarm.doorman import Doorman, Refused
from training.swarm.gate_records import GateValidator
from training.swarm.gated import GatedStub, _checked
from training.swarm.gatekeeper import Gatekeeper
from training.swarm.identity import owner_subkey
from training.swarm.watch import GateWatch

CONFIG = config_make(admission="pass")


class World:
    """A site, alice who judges, and others."""

    def __init__(self, folder: Path, keys: dict[str, SwarmKey]) -> None:
        self.office, self.keys = PassOffice(folder / "site"), keys
        self.gate: Gate = self.office.gate(folder / "alice", CONFIG, keys["alice"])
        self.gatekeeper = Gatekeeper(self.gate)

    def pass_of(self, name: str, **claims: Any) -> str:
        return self.office.pass_make(CONFIG, self.keys[name], **claims)

    def ban(self, name: str) -> None:
        self.gate.revocations_take(self.office.revoke(CONFIG.run, self.keys[name].peer_id))

    def peer(self, name: str) -> PeerID:
        return PeerID.from_base58(self.keys[name].peer_id)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SwarmKey]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: swarm_key_load_or_create(folder / name) for name in ("alice", "bob", "mallory")}


@pytest.fixture
def world(tmp_path: Path, keys: dict[str, SwarmKey], monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(gatekeeper_module, "_LOOK_SECONDS", 0.0)
    return World(tmp_path, keys)


def test_a_ban_reaches_a_process_that_was_forked_before(world: World) -> None:
    bob, token = world.keys["bob"].peer_id, world.pass_of("bob")
    assert world.gatekeeper.judge(bob, token) is Verdict.ADMITTED
    world.ban("bob")
    assert world.gatekeeper.judge(bob, token) is Verdict.PEER_REVOKED
    assert world.gatekeeper.is_revoked(bob)


def test_a_known_peer_keeps_its_grace_and_a_newcomer_has_none(world: World) -> None:
    bob, mallory = world.keys["bob"].peer_id, world.keys["mallory"].peer_id
    assert world.gatekeeper.judge(bob, world.pass_of("bob")) is Verdict.ADMITTED
    assert world.gatekeeper.judge(bob, world.pass_of("bob", age=2000)) is Verdict.ADMITTED
    late = world.pass_of("mallory", age=2000)
    assert world.gatekeeper.judge(mallory, late) is Verdict.PASS_EXPIRED


def test_a_file_that_vanishes_takes_no_ban_back(world: World) -> None:
    world.ban("bob")
    assert world.gatekeeper.is_revoked(world.keys["bob"].peer_id)
    world.gate.path.unlink()
    assert world.gatekeeper.is_revoked(world.keys["bob"].peer_id)


def test_what_is_remembered_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gatekeeper_module, "MAX_KNOWN", 3)
    for number in range(6):
        peer_id = f"QmPeer{number}"
        token = world.pass_of("bob", peer_id=peer_id)
        assert world.gatekeeper.judge(peer_id, token) is Verdict.ADMITTED
    assert len(world.gatekeeper._known) == len(world.gatekeeper._passes) == 3


async def test_calls_of_the_dht_are_signed_and_checked(world: World) -> None:
    alice = PassAuthorizer(world.keys["alice"], world.gatekeeper)
    token = await alice.get_token()
    assert alice.is_token_valid(token)
    request = PingRequest()
    await alice.sign_request(request, None)
    assert await alice.validate_request(request)
    for change in (
        {"username": "mallory"},
        {
            "public_key": PassAuthorizer(
                world.keys["mallory"], world.gatekeeper
            ).local_public_key.to_bytes()
        },
        {"public_key": b"nonsense"},
        {"signature": b"\xff\xfe"},
        {"signature": b""},
    ):
        changed = AccessToken()
        changed.CopyFrom(token)
        for name, value in change.items():
            setattr(changed, name, value)
        assert not alice.is_token_valid(changed), change


@pytest.mark.parametrize("age", [0, 9000])
async def test_a_call_costs_one_look_at_its_pass_whether_or_not_it_is_good(
    world: World, monkeypatch: pytest.MonkeyPatch, age: int
) -> None:
    alice = PassAuthorizer(world.keys["alice"], world.gatekeeper)
    token = await alice.get_token()
    made: list[str] = []

    def counted(shown: str, keys: Any) -> Any:
        made.append(shown)
        return pass_open(shown, keys)

    monkeypatch.setattr(gatekeeper_module, "pass_open", counted)
    token.signature = world.pass_of("alice", age=age).encode()
    assert alice.is_token_valid(token) == (age == 0)
    token.signature = b"nonsense"
    assert not alice.is_token_valid(token)
    assert len(made) == 2, "one look at each"


async def test_an_own_pass_that_ran_out_breaks_no_call_of_ours(
    world: World, tmp_path: Path
) -> None:
    late = world.office.gate(tmp_path / "late", CONFIG, world.keys["bob"], age=9000)
    bob = PassAuthorizer(world.keys["bob"], Gatekeeper(late))
    request = PingRequest()
    await bob.sign_request(request, None)
    assert not await PassAuthorizer(world.keys["alice"], world.gatekeeper).validate_request(request)
    late.heard(peer_pass=world.pass_of("bob"))
    await bob.sign_request(renewed := PingRequest(), None)
    assert await PassAuthorizer(world.keys["alice"], world.gatekeeper).validate_request(renewed)


def record_make(key: str, owner: SwarmKey, value: object) -> DHTRecord:
    dump = DHTProtocol.serializer.dumps
    place = DHTID.generate(source=key).to_bytes()
    return DHTRecord(place, dump(owner_subkey(owner)), dump(value), swarm_time() + 60)


def test_members_keep_their_own_pass_in_the_dht_and_the_sites_list_and_nothing_else(
    world: World, tmp_path: Path
) -> None:
    checks = GateValidator(CONFIG.swarm_id, world.gatekeeper)
    members, lists = members_key(CONFIG.swarm_id), revocations_key(CONFIG.swarm_id)
    bob, mallory = world.keys["bob"], world.keys["mallory"]
    listed, other = world.office.revoke(CONFIG.run, "QmEve"), PassOffice(tmp_path / "other")
    for key, owner, value, is_kept in (
        (members, bob, world.pass_of("bob"), True),
        (members, bob, world.pass_of("bob", age=9000), True),
        (members, mallory, world.pass_of("bob"), False),
        (members, mallory, other.pass_make(CONFIG, mallory), False),
        (members, mallory, listed, False),
        (members, mallory, "nonsense", False),
        (members, mallory, [1, 2], False),
        (lists, mallory, listed, True),
        (lists, mallory, listed, True),
        (lists, mallory, other.revoke(CONFIG.run, "QmEve"), False),
        (lists, mallory, world.office.revoke("other", "QmEve"), False),
        (lists, mallory, world.pass_of("mallory"), False),
        ("something else", mallory, "anything", True),
    ):
        record = record_make(key, owner, value)
        assert checks.validate(record) is is_kept, (key, value)
    broken = record_make(members, bob, "x")
    assert not checks.validate(dataclasses.replace(broken, value=b"\xc1"))
    nobodys = record_make(members, bob, world.pass_of("bob"))
    assert not checks.validate(dataclasses.replace(nobodys, subkey=b"\xa1x"))


class Reads:
    """Stands for the DHT: what members have stored, and how often it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens: list[str] = []
        self.num = 0
        monkeypatch.setattr(doorman_module, "passes_read", self.read)

    async def read(self, dht: object, *, run_id: str, seconds: float) -> list[str]:
        self.num += 1
        return self.tokens


async def test_a_stranger_costs_one_look_a_second_however_often_it_knocks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorman_module, "_REFRESH_SECONDS", 0.2)
    reads = Reads(monkeypatch)
    reads.tokens = [world.pass_of("bob"), "nonsense", world.pass_of("mallory", run="other")]
    doorman = Doorman(None, world.gatekeeper, run_id="x")
    started = time.monotonic()
    verdicts = [doorman.verdict(world.peer("mallory")) for _ in range(200)]
    found = set(await asyncio.gather(*verdicts))
    assert found <= {Verdict.PASS_NONE, Verdict.PASS_WRONG_RUN}
    assert reads.num <= 2 + (time.monotonic() - started) / 0.2
    assert await doorman.admits(world.peer("bob"))
    before = reads.num
    assert await doorman.admits(world.peer("bob"))
    assert reads.num == before


async def test_nothing_is_asked_of_or_sent_to_a_peer_without_a_pass(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Reads(monkeypatch)

    class Stub:
        async def rpc_download_state(self, request: object) -> None:
            raise AssertionError("it was called")

    doorman = Doorman(None, world.gatekeeper, run_id="x")
    with pytest.raises(Refused, match="pass_none"):
        await GatedStub(Stub(), world.peer("mallory"), doorman).rpc_download_state(None)


async def test_a_running_stream_ends_with_the_ban(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    reads.tokens = [world.pass_of("bob")]
    ended: list[bool] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.append(True)

    stream = _checked(endless(), Doorman(None, world.gatekeeper, run_id="x"), world.peer("bob"))
    assert await anext(stream) == 1
    world.ban("bob")
    with pytest.raises(Refused, match="peer_revoked"):
        await anext(stream)
    assert ended


def test_a_question_is_answered_with_the_verdict_and_the_time(world: World) -> None:
    bob, now = world.keys["bob"].peer_id, swarm_time()
    for token, told_now, verdict in (
        (world.pass_of("bob"), now, Verdict.ADMITTED),
        (world.pass_of("bob"), now + 30, Verdict.CLOCK_OFF),
        ("", now + 30, Verdict.PASS_NONE),
    ):
        question = AdmissionQuestion(peer_pass=token, now=told_now)
        answer = answer_of(world.gatekeeper, bob, question, now)
        assert (answer.verdict, answer.now) == (verdict, now)


def test_questions_are_limited_per_peer_and_in_all() -> None:
    limit = AskLimit()
    allowed = [limit.allows("QmMallory", 0.0) for _ in range(20)]
    assert 5 <= sum(allowed) <= 7
    assert limit.allows("QmBob", 0.0)
    assert limit.allows("QmMallory", 60.0)
    for number in range(5000):
        limit.allows(f"Qm{number}", 61.0)
    assert len(limit._due) <= 1024
    limit.num_running = 16
    assert not limit.allows("QmBob", 99.0)


def test_a_revoked_peer_is_told_once_and_a_dead_dht_ends_nothing(world: World) -> None:
    class DeadDHT:
        run_id = CONFIG.swarm_id

        def __getattr__(self, name: str) -> Any:
            raise OSError("gone")

    told: list[bool] = []
    watch = GateWatch(
        DeadDHT(),
        key=world.keys["alice"],
        gate=world.gate,
        clock=SiteClock(),
        spreads_list=True,
        revoked=lambda: told.append(True),
    )
    watch.look()
    assert told == []
    world.ban("alice")
    watch.look()
    watch.look()
    assert told == [True]
