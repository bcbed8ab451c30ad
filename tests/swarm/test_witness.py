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


def together(*peers: Peer) -> list[tuple[FinishedEpoch, ...]]:
    """The epochs that each of these peers ended in a round of them all, one entry per epoch."""
    ended: list[dict[int, FinishedEpoch]] = []
    for peer in peers:
        assert peer.optimizer is not None
        rounds = (each for each in peer.optimizer.finished if each.group_size == len(peers))
        ended.append({each.epoch: each for each in rounds})
    common = set.intersection(*(set(each) for each in ended))
    return [tuple(each[epoch] for each in ended) for epoch in sorted(common)]


def test_two_peers_read_each_others_samples_from_the_parts(tmp_path: Path) -> None:
    config = config_make(target_batch_size=96, matchmaking_seconds=2.0)
    with (
        dht_peer(tmp_path / "entrance", config) as entrance,
        training_peer(tmp_path / "alice", config, entrance.addresses) as alice,
        training_peer(tmp_path / "bob", config, entrance.addresses) as bob,
    ):
        assert bob.optimizer is not None
        averager, optimizer = bob.optimizer.grad_averager, bob.optimizer
        averager.epoch_of = lambda: optimizer.local_epoch + 1  # as one who is in the next epoch
        was_in: dict[int, int] = {}

        def work(peer: Peer, batch: int) -> None:
            while not together(alice, bob):
                if peer is bob:
                    was_in[len(optimizer.finished)] = optimizer.local_epoch
                train(peer, batch, 1)
                threading.Event().wait(0.3)

        threads = [threading.Thread(target=work, args=who) for who in ((alice, 16), (bob, 8))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        found = together(alice, bob)
        assert found, "a round of two is found by both"
        of_alice, of_bob = found[0]
        before = was_in[optimizer.finished.index(of_bob)]
        assert of_alice.epoch == before + 1, "what bob says of his has travelled"
        assert dict(of_alice.weights) == {bob.key.peer_id: of_bob.samples}
        assert dict(of_bob.weights) == {alice.key.peer_id: of_alice.samples}
