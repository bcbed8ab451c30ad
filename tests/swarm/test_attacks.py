"""Five honest peers and some that are not, in real all-reduces over loopback."""

import math
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import torch

from tests.swarm.arena import (
    GUARDED,
    LYING,
    Contestant,
    average,
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


@pytest.fixture(scope="module")
def alone(peers: list[Contestant]) -> float:
    """Final loss of the worst of five honest peers among themselves."""
    loss = max(train(peers[:HONEST], ROUNDS))
    print(f"honest only: {loss:.4f}")  # noqa: T201 - shown with -s
    assert loss < 0.6, "it has to learn at all"
    return loss


def test_with_the_guard_three_attackers_cost_no_more_than_five_percent(
    peers: list[Contestant], alone: float
) -> None:
    attack(peers)
    guarded = max(train(peers, ROUNDS)[:HONEST])
    print(f"with three attackers and the guard: {guarded:.4f}")  # noqa: T201
    assert guarded <= 1.05 * alone


def test_what_lying_reducers_give_back_costs_no_more_than_five_percent(
    peers: list[Contestant], alone: float
) -> None:
    """One gives back a hundredfold, one turns all signs: they average two sevenths of the model."""
    LYING.fill_(1)
    losses = train([*peers[:HONEST], *peers[HONEST + 1 :]], ROUNDS)[:HONEST]
    told = [note for one in peers[:HONEST] for note in one.averager.guard.taken()]
    print(f"with two lying reducers: {max(losses):.4f}")  # noqa: T201
    assert max(losses) <= 1.05 * alone
    assert sum("cannot be right" in note for note in told) == HONEST


def test_who_withholds_its_gradients_takes_part_and_weighs_nothing(
    peers: list[Contestant],
) -> None:
    team = peers[:3]
    for one in team:
        one.reset()
        one.compute()
    *others, odd = [one.averager for one in team]
    for total in odd._grad_accumulators():
        total.fill_(math.nan)
    odd.is_withheld = True
    expected = sum(next(o._grad_accumulators()).clone() for o in others) / len(others)
    average(team)
    for averager in (*others, odd):
        with averager.get_tensors() as tensors:
            assert torch.allclose(tensors[0], expected, atol=1e-3)


def test_without_the_guard_the_same_attackers_ruin_the_model(peers: list[Contestant]) -> None:
    GUARDED.zero_()
    untrained = peers[0].reset() or peers[0].loss()
    attack(peers)
    finite_only = min(train([*peers[:HONEST], *peers[HONEST + 1 :]], ROUNDS // 2)[:HONEST])
    with_nan = train(peers, 1)[:HONEST]
    print(f"untrained {untrained:.2f}, without guard {finite_only:.2f} and {with_nan[0]}")  # noqa: T201
    assert finite_only > 2 * untrained
    assert all(math.isnan(loss) for loss in with_nan)
