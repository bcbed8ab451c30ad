"""The gate of a real swarm: a coordinator and four trainers, one of whom is banned at the end.

The tests share the swarm and go on from each other: it takes half a minute to start.
"""

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.outsider import attack
from tests.swarm.processes import Swarm, config_make, wait_until
from tests.swarm.stand_in_passes import PassOffice
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.admission import AdmissionAnswer, Verdict
from training.protocol.config import (
    ReportConfig,
)
from training.protocol.envelope import peek_body
from training.swarm.admission import admission_ask
from training.swarm.clock import swarm_clock_set
from training.swarm.dht import SwarmError, dht_start, dht_stop

pytestmark = [pytest.mark.swarm, pytest.mark.quiet, pytest.mark.timeout(240)]

log = logging.getLogger(__name__)
PASS_SECONDS = 12.0
CONFIG = config_make(
    {"target_batch_size": 400, "pass_grace_seconds": 600},
    report=ReportConfig(publish_seconds=0.5, snapshot_seconds=1.0, heartbeat_seconds=4.0),
)
HONEST = ("alice", "bob", "carol")
CAROL_AHEAD = 300.0


class Groups:
    """The averaging rounds of a swarm's trainers, as they wrote them down."""

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm

    def of(self, name: str, *, since: float = 0.0) -> list[dict[str, Any]]:
        path = self.swarm.folder / name / "groups.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [g for g in map(json.loads, lines) if g["at"] > since]

    def wait(self, size: int, number: int, *, names: tuple[str, ...] = HONEST) -> None:
        """Wait until all of them have been in so many more groups of that size."""
        since = time.time()

        def are_there() -> bool:
            self.swarm.check_alive()
            rounds = [[g for g in self.of(n, since=since) if g["size"] == size] for n in names]
            return min(map(len, rounds)) >= number

        wait_until(f"{number} groups of {size}", are_there, seconds=100)


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swarm]:
    swarm = Swarm(tmp_path_factory.mktemp("gate"), CONFIG)
    swarm.site.passes.lifetime_set(PASS_SECONDS)
    try:
        swarm.start_coordinator()
        for name in (*HONEST, "mallory"):
            words = ["--ahead", str(CAROL_AHEAD)] if name == "carol" else []
            swarm.start_trainer(name, *words, speed=25)
        yield swarm
    finally:
        swarm.close()


@pytest.fixture(scope="module")
def groups(swarm: Swarm) -> Groups:
    return Groups(swarm)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> SwarmKey:
    return swarm_key_load_or_create(tmp_path_factory.mktemp("stranger") / "swarm.key")


def test_members_train_on_while_their_passes_are_renewed_and_one_clock_is_off(
    swarm: Swarm, groups: Groups
) -> None:
    groups.wait(4, 1)
    path = swarm.folder / "alice" / "gate.json"
    first, started = json.loads(path.read_text())["pass"], time.time()
    groups.wait(4, 2)
    wait_until("a pass to end", lambda: time.time() > peek_body(first)["exp"] + 1)
    groups.wait(4, 1)
    assert json.loads(path.read_text())["pass"] != first
    for name in HONEST:
        rounds = groups.of(name, since=started)
        assert [g for g in rounds if g["size"] < 2] == [], "nobody was left out of a round"


def test_a_process_without_a_pass_gets_nothing_and_disturbs_nobody(
    swarm: Swarm, groups: Groups, stranger: SwarmKey
) -> None:
    wait_until("the coordinator to see all", lambda: len(everybody(swarm)) == 5)
    addresses = everybody(swarm)
    started = time.time()
    got = attack(stranger.path, CONFIG.swarm_id, addresses, 60)
    assert got["connected"] == 5, "libp2p itself lets anybody connect"
    assert got["libp2p"] == {"routing", "ping", "identify"}, "no relay, no dialling service"
    assert got["bytes"] == 0
    assert got["dht"] == ["refused"] * 15
    answered = [code for code in got["codes"] if code != "no such call"]
    # Five state averagers and the trainers' four gradient averagers, six calls each.
    assert answered == ["PROTOCOL_VIOLATION"] * 54
    groups.wait(4, 1)
    for name in HONEST:
        assert all(g["size"] >= 2 for g in groups.of(name, since=started))


def test_every_refusal_says_why(swarm: Swarm, tmp_path: Path, stranger: SwarmKey) -> None:
    office, alice = swarm.site.passes, swarm.key_of("alice")
    cases = {
        Verdict.PASS_NONE: "",
        Verdict.PASS_EXPIRED: office.pass_make(CONFIG, stranger, age=60),
        Verdict.PASS_WRONG_RUN: office.pass_make(CONFIG, stranger, run="other"),
        Verdict.PASS_WRONG_LINEAGE: office.pass_make(CONFIG, stranger, lineage=2),
        Verdict.PASS_WRONG_PEER: office.pass_make(CONFIG, alice),
        Verdict.PASS_UNKNOWN_KEY: PassOffice(tmp_path / "other").pass_make(CONFIG, stranger),
    }
    for verdict, token in cases.items():
        answer = asked(swarm, stranger, token)
        assert answer is not None
        assert answer.verdict is verdict
        assert abs(answer.now - time.time()) < 5
    for number, verdict in enumerate((Verdict.PASS_EXPIRED, Verdict.PASS_WRONG_PEER)):
        gate = office.gate(tmp_path / str(number), CONFIG, stranger)
        gate.heard(peer_pass=cases[verdict])
        with pytest.raises(SwarmError) as caught:
            dht_stop(joined(swarm, stranger, gate))
        assert caught.value.may_be_refusal
    good = office.pass_make(CONFIG, stranger)
    for offset, verdict in ((0.0, Verdict.ADMITTED), (40.0, Verdict.CLOCK_OFF)):
        swarm_clock_set(offset)
        try:
            answer = asked(swarm, stranger, good)
        finally:
            swarm_clock_set(0.0)
        assert answer is not None
        assert answer.verdict is verdict


def test_training_goes_on_while_the_site_is_away_longer_than_a_pass_lives(
    swarm: Swarm, groups: Groups
) -> None:
    swarm.site.set_down(True)
    started = time.time()
    wait_until("all passes to end", lambda: time.time() > started + PASS_SECONDS + 1)
    groups.wait(4, 1)
    token = json.loads((swarm.folder / "alice" / "gate.json").read_text())["pass"]
    assert peek_body(token)["exp"] < time.time()
    swarm.site.set_down(False)
    wait_until(
        "a fresh pass",
        lambda: json.loads((swarm.folder / "alice" / "gate.json").read_text())["pass"] != token,
    )


def test_nobody_averages_with_a_banned_peer_ten_seconds_later(
    swarm: Swarm, groups: Groups, record_property: Any
) -> None:
    groups.wait(4, 1)
    # Their heartbeats stop, as those of real trainers come every 30 s: the DHT has to do it.
    for name in HONEST:
        (swarm.folder / name / "mute").touch()
    mallory = swarm.key_of("mallory").peer_id
    published = time.time()
    swarm.site.passes.revoke(CONFIG.run, mallory)
    applied = dict.fromkeys(HONEST, 0.0)

    def all_apply() -> bool:
        for name in HONEST:
            if not applied[name] and '"eyJ' in revocations_of(swarm, name):
                applied[name] = time.time() - published
        return all(applied.values())

    wait_until("the list to reach everybody", all_apply, seconds=10)
    groups.wait(3, 2)
    for name in HONEST:
        (swarm.folder / name / "mute").unlink()
    with_mallory = [
        g["at"] - published
        for name in HONEST
        for g in groups.of(name, since=published)
        if g["size"] == 4
    ]
    last = max(with_mallory, default=0.0)
    record_property("seconds_until_applied", max(applied.values()))
    record_property("seconds_until_last_round_with_the_banned", last)
    log.info("applied after %.1f s, last round with it %.1f s", max(applied.values()), last)
    assert last <= 10
    assert all(g["size"] <= 1 for g in groups.of("mallory", since=published + 10))
    wait_until("the coordinator to see who applies it", lambda: seen_by(swarm) >= set(HONEST))


def test_a_banned_peer_is_told_so_and_is_not_connected(
    swarm: Swarm, groups: Groups, tmp_path: Path
) -> None:
    key = swarm.key_of("mallory")
    swarm.stop("mallory")
    answer = asked(swarm, key, swarm.site.passes.pass_make(CONFIG, key))
    assert answer is None or answer.verdict is Verdict.PEER_REVOKED
    started = time.time()
    with pytest.raises(SwarmError):
        dht_stop(joined(swarm, key, swarm.site.passes.gate(tmp_path, CONFIG, key)))
    assert all(g["size"] == 3 for g in groups.of("alice", since=started))


def everybody(swarm: Swarm) -> list[str]:
    snapshot = swarm.site.snapshot
    return [] if snapshot is None else sorted(snapshot.bootstrap_peers)


def revocations_of(swarm: Swarm, name: str) -> str:
    return json.dumps(json.loads((swarm.folder / name / "gate.json").read_text())["revocations"])


def seen_by(swarm: Swarm) -> set[str]:
    """Return who says that it applies a list of revoked peers."""
    snapshot = swarm.site.snapshot
    assert snapshot is not None
    names = {swarm.key_of(name).peer_id: name for name in (*HONEST, "mallory")}
    bodies = [peek_body(peer.jws) for peer in snapshot.peers if peer.jws]
    return {names[body["peer_id"]] for body in bodies if body["revocations_seq"] == 1}


def asked(swarm: Swarm, key: SwarmKey, token: str) -> AdmissionAnswer | None:
    return admission_ask(
        key=key, run_id=CONFIG.swarm_id, addresses=[swarm.address], peer_pass=token
    )


def joined(swarm: Swarm, key: SwarmKey, gate: Any) -> Any:
    return dht_start(
        key=key,
        run_id=CONFIG.swarm_id,
        initial_peers=[swarm.address],
        bind="127.0.0.1",
        port=0,
        client_mode=False,
        gate=gate,
    )
