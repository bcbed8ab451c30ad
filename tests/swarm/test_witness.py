"""What an averager sees of the others in its round."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2

from tests.swarm.peers import Peer, config_make, dht_peer, training_peer
from training.swarm.optimizer import FinishedEpoch
from training.swarm.witness import PartWeights, round_epoch

pytestmark = pytest.mark.swarm

ALICE, BOB, MALLORY = (PeerID(bytes([0x12, 0x20, number]) + bytes(31)) for number in range(3))


@pytest.mark.parametrize(
    ("weights", "samples"),
    [
        ([96.0, 96.0], 96),
        ([96.0, 40.0, 96.0], 40),
        ([0.0], 0),
        ([-5.0], 0),
        ([float("nan")], 0),
        ([float("inf")], 0),
        ([], None),
    ],
)
def test_the_smallest_weight_of_a_sender_stands(weights: list[float], samples: int | None) -> None:
    seen = PartWeights()
    for weight in weights:
        seen.note(b"round", BOB, weight)
    assert seen.of_group(b"round", [ALICE, BOB]) == {ALICE: None, BOB: samples}


def test_another_round_is_another_account_and_strangers_are_not_told() -> None:
    seen = PartWeights()
    seen.note(b"first", BOB, 10.0)
    seen.note(b"second", BOB, 20.0)
    seen.note(b"second", MALLORY, 1e9)
    assert seen.of_group(b"first", [BOB]) == {BOB: None}
    assert seen.of_group(b"second", [BOB]) == {BOB: 20}


def test_senders_that_are_no_members_push_out_only_the_oldest() -> None:
    seen = PartWeights(length=2)
    for sender in (ALICE, BOB, ALICE, MALLORY):
        seen.note(b"round", sender, 10.0)
    assert seen.of_group(b"round", [ALICE, BOB]) == {ALICE: 10, BOB: None}


def test_a_stream_passes_unchanged_and_only_its_first_message_names_the_round() -> None:
    messages = [
        averaging_pb2.AveragingData(group_id=b"round", weight=64.0),
        averaging_pb2.AveragingData(weight=64.0),
    ]

    async def stream() -> AsyncIterator[averaging_pb2.AveragingData]:
        for message in messages:
            yield message

    async def read(seen: PartWeights) -> list[Any]:
        return [message async for message in seen.watched(stream(), BOB)]

    seen = PartWeights()
    assert asyncio.run(read(seen)) == messages
    assert seen.of_group(b"round", [BOB]) == {BOB: 64}


@pytest.mark.parametrize(
    ("own", "named", "ended"),
    [
        (5, [5, 6, 6, 6], 6),
        (6, [5, 6, 6, 6], 6),
        (5, [5, 6], 6),
        (6, [5, 6], 6),
        (5, [5, 5, 99], 5),
        (5, [5, 99], 6),
        (5, [5, None, None], 5),
        (5, [], 5),
    ],
)
def test_a_round_ends_the_epoch_that_most_of_its_members_are_in(
    own: int, named: list[int | None], ended: int
) -> None:
    """One who waited into the others' next round is counted in theirs; a liar moves little."""
    assert round_epoch(own, named) == ended


def train(peer: Peer, batch: int, steps: int) -> None:
    model, optimizer = peer.model, peer.optimizer
    assert model is not None
    assert optimizer is not None
    for _ in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1.0)
        optimizer.step(batch_size=batch)


def test_two_peers_read_each_others_samples_from_the_parts(tmp_path: Path) -> None:
    config = config_make(target_batch_size=96, matchmaking_seconds=2.0)
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(tmp_path / "alice", config, entrance.addresses) as alice,
        training_peer(tmp_path / "bob", config, entrance.addresses) as bob,
    ):
        found: dict[str, FinishedEpoch] = {}
        was_in: dict[str, int] = {}
        peers = {"alice": (alice, 16), "bob": (bob, 8)}

        def work(name: str) -> None:
            peer, batch = peers[name]
            assert peer.optimizer is not None
            while not any(epoch.group_size == 2 for epoch in peer.optimizer.finished):
                was_in[name] = peer.optimizer.local_epoch
                train(peer, batch, 1)
                threading.Event().wait(0.3)
            found[name] = next(e for e in peer.optimizer.finished if e.group_size == 2)

        assert bob.optimizer is not None
        averager, optimizer = bob.optimizer.grad_averager, bob.optimizer
        averager.epoch_of = lambda: optimizer.local_epoch + 1  # as one who is in the next epoch
        threads = [threading.Thread(target=work, args=(name,)) for name in peers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert found.keys() == peers.keys(), "a round of two is found"
        assert found["alice"].epoch == found["bob"].epoch
        assert found["alice"].epoch == was_in["bob"] + 1, "what bob says of his has travelled"
        assert dict(found["alice"].weights) == {bob.key.peer_id: found["bob"].samples}
        assert dict(found["bob"].weights) == {alice.key.peer_id: found["alice"].samples}
