"""Five honest peers and some that are not, in real all-reduces over loopback."""

import math
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.swarm.arena import (
    GUARDED,
    LYING,
    Contestant,
    flipped,
    hundredfold,
    not_a_number,
    train,
)
from tests.swarm.peers import config_make, dht_peer

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(400)]
HONEST, ROUNDS = 5, 12
ATTACKS = (not_a_number, hundredfold, flipped)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Contestant]]:
    """Five honest peers, then one for each attack."""
    folder = tmp_path_factory.mktemp("arena")
    config = config_make(
        matchmaking_seconds=1.0,
        request_timeout_seconds=0.7,
        target_batch_size=8 * 512,
        compression="float16",
    )
    contestants: list[Contestant] = []
    with ExitStack() as stack:
        addresses: list[str] = []
        for number in range(HONEST + len(ATTACKS)):
            peer = stack.enter_context(dht_peer(folder / str(number), config, addresses))
            addresses = addresses or peer.addresses
            lie = ATTACKS[number - HONEST] if number >= HONEST else None
            contestant = Contestant(peer, config, number, lie)
            stack.callback(contestant.averager.shutdown)
            contestants.append(contestant)
        yield contestants


@pytest.fixture(autouse=True)
def _fair(peers: list[Contestant]) -> Iterator[None]:
    yield
    GUARDED.fill_(1)
    LYING.zero_()
    for one in peers:
        one.averager.tamper = None


def attack(peers: list[Contestant]) -> None:
    for one, tamper in zip(peers[HONEST:], ATTACKS, strict=True):
        one.averager.tamper = tamper


def test_with_the_guard_three_attackers_cost_no_more_than_five_percent(
    peers: list[Contestant],
) -> None:
    alone = max(train(peers[:HONEST], ROUNDS))
    attack(peers)
    guarded = max(train(peers, ROUNDS)[:HONEST])
    print(f"honest only {alone:.4f}, with three attackers and the guard {guarded:.4f}")  # noqa: T201
    assert alone < 0.6, "it has to learn at all"
    assert guarded <= 1.05 * alone


def test_without_the_guard_the_same_attackers_ruin_the_model(peers: list[Contestant]) -> None:
    GUARDED.zero_()
    untrained = peers[0].reset() or peers[0].loss()
    attack(peers)
    finite_only = min(train([*peers[:HONEST], *peers[HONEST + 1 :]], ROUNDS // 2)[:HONEST])
    with_nan = train(peers, 1)[:HONEST]
    print(f"untrained {untrained:.2f}, without guard {finite_only:.2f} and {with_nan[0]}")  # noqa: T201
    assert finite_only > 2 * untrained
    assert all(math.isnan(loss) for loss in with_nan)


def test_lies_of_those_who_average_for_others_are_not_taken_over(peers: list[Contestant]) -> None:
    """They own three eighths of the averages; flipping signs is the one lie that passes."""
    LYING.fill_(1)
    liars = peers[HONEST : HONEST + 2]
    losses = train([*peers[:HONEST], *liars], ROUNDS)[:HONEST]
    print(f"with two lying reducers {losses}")  # noqa: T201
    assert all(math.isfinite(loss) and loss < 0.7 for loss in losses)
    told = [note for one in peers[:HONEST] for note in one.averager.guard.taken()]
    assert any("cannot be right" in note for note in told)
