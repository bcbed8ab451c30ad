"""What the guards do in real optimizers: with one's own gradients, with states, in averagings."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from tests.swarm.peers import Peer, config_make, dht_peer, training_peer
from training.protocol.config import TaskConfig
from training.swarm import averaging
from training.swarm.optimizer import SwarmOptimizer
from training.swarm.state_files import StateShapeError, schema_sha256
from training.swarm.state_take import KnownState

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(120)]
CONFIG = config_make(target_batch_size=32)
WIDE = CONFIG.model_copy(update={"task": TaskConfig(name="tiny", params={"hidden": 48})})


def optimizer_of(peer: Peer) -> SwarmOptimizer:
    assert peer.optimizer is not None
    return peer.optimizer


def epoch_run(peer: Peer, value: float) -> None:
    """Train for one epoch with gradients of a single value."""
    assert peer.model is not None
    for parameter in peer.model.parameters():
        parameter.grad = torch.full_like(parameter, value)
    optimizer_of(peer).step(batch_size=32)


def fill(peer: Peer, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    optimizer = optimizer_of(peer)
    with torch.no_grad(), optimizer.state_averager.lock_averaged_tensors:
        for parameter in optimizer.parameters:
            parameter.copy_(change(parameter))


def offer(peer: Peer, epoch: int, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Let a peer say that it has the state of an epoch."""
    fill(peer, change)
    averager = optimizer_of(peer).state_averager
    averager.local_epoch = averager.state_sharing_priority = epoch


def states_average(*peers: Peer) -> None:
    """Let peers average their weights, all at once."""
    rounds = [
        threading.Thread(
            target=optimizer_of(peer).state_averager.step,
            kwargs={"averaging_round": True, "averaging_opts": {"timeout": 15}},
        )
        for peer in peers
    ]
    for one in rounds:
        one.start()
    for one in rounds:
        one.join(40)


@pytest.mark.parametrize("value", [math.nan, 1e6])
def test_odd_gradients_of_ones_own_are_told_not_used_and_not_counted(
    tmp_path: Path, value: float
) -> None:
    with training_peer(tmp_path, CONFIG) as peer:
        optimizer = optimizer_of(peer)
        for _ in range(8):
            epoch_run(peer, 1.0)
        before = optimizer.parameters[0].detach().clone()
        epoch_run(peer, value)
        *good, odd = optimizer.finished
        assert all(epoch.samples == 32 and not epoch.notes for epoch in good)
        assert odd.samples == 0
        (note,) = odd.notes
        assert "the gradients of this device" in note
        assert "do not count" in note
        # Momentum and weight decay go on, as with gradients of zero.
        assert float((optimizer.parameters[0].detach() - before).norm()) < 0.1 * float(
            before.norm()
        )
        epoch_run(peer, 1.0)
        assert optimizer.finished[-1].samples == 32


def test_the_first_sound_state_is_taken_whatever_others_offer(tmp_path: Path) -> None:
    """A newcomer asks the newest first: not finite, far too large, of another model; then alice."""
    with ExitStack() as stack:
        entrance = stack.enter_context(dht_peer(tmp_path / "entrance", CONFIG))

        def join(name: str, config: object = CONFIG) -> Peer:
            made = training_peer(tmp_path / name, config, entrance.addresses)  # type: ignore[arg-type]
            return stack.enter_context(made)

        offer(join("not finite"), 9, lambda values: values * math.nan)
        offer(join("too large"), 8, lambda values: values * 1000)
        offer(join("another model", WIDE), 7, lambda values: values)
        alice = join("alice")
        offer(alice, 6, lambda values: values + 0.01)
        time.sleep(1)
        bob = join("bob")
        newcomer = optimizer_of(bob)
        newcomer.load_state_from_peers()
        assert newcomer.local_epoch == 6
        pairs = zip(optimizer_of(alice).parameters, newcomer.parameters, strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_a_state_that_does_not_fit_the_newest_checkpoint_is_refused(tmp_path: Path) -> None:
    with (
        training_peer(tmp_path / "mallory", CONFIG) as mallory,
        training_peer(tmp_path / "bob", CONFIG, mallory.addresses) as bob,
    ):
        offer(mallory, 6, lambda values: values * 5)
        time.sleep(1)
        optimizer, usual = optimizer_of(bob), averaging.norm_of(optimizer_of(bob).parameters)
        optimizer._known = KnownState(epoch=5, parameter_norm=usual)
        optimizer.load_state_from_peers()
        assert optimizer.local_epoch == 0
        assert "norm of its parameters" in optimizer.notes_taken()[0]
        optimizer._known = None  # without a checkpoint five times as much is possible
        optimizer.load_state_from_peers()
        assert optimizer.local_epoch == 6


@pytest.mark.parametrize("is_endless", [False, True])
def test_a_peer_of_another_model_is_told_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_endless: bool
) -> None:
    if is_endless:
        monkeypatch.setattr(averaging, "bytes_allowed", lambda tensors: 10)
    with (
        training_peer(tmp_path / "alice", CONFIG) as alice,
        training_peer(tmp_path / "carol", WIDE, alice.addresses) as carol,
    ):
        offer(alice, 3, lambda values: values)
        time.sleep(1)
        started = time.monotonic()
        optimizer = optimizer_of(carol)
        with pytest.raises(StateShapeError, match="other shapes"):
            optimizer.load_state_from_peers()
        assert time.monotonic() - started < 10
        # Who has compared its model with the checkpoint knows that it is the other that is wrong.
        assert carol.model is not None
        optimizer._known = KnownState(3, 5.0, has_schema=bool(schema_sha256(carol.model)))
        optimizer.load_state_from_peers()
        assert optimizer.local_epoch == 0


def test_weights_of_a_peer_that_went_astray_do_not_spread(tmp_path: Path) -> None:
    with (
        training_peer(tmp_path / "alice", CONFIG) as alice,
        training_peer(tmp_path / "mallory", CONFIG, alice.addresses) as mallory,
    ):
        fill(mallory, lambda values: values * 100)
        before = [parameter.detach().clone() for parameter in optimizer_of(alice).parameters]
        notes: tuple[str, ...] = ()
        for _ in range(4):  # they may miss each other
            states_average(alice, mallory)
            notes += optimizer_of(alice).notes_taken()
            if notes:
                break
        pairs = zip(before, optimizer_of(alice).parameters, strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
        assert any("cannot be right" in note for note in notes)
