"""A peer that others have gone on without follows them instead of waiting for their next round."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hivemind.averaging.control import AveragingStage, StepControl
from hivemind.utils import MPFuture, get_dht_time

from tests.swarm.peers import config_make, training_peer
from tests.swarm.processes import session_members, wait_until
from tests.swarm.test_optimizer import gradients_set, parts
from tests.swarm.test_training import Trainers, trainers
from training.swarm.cancelling import control_withdraw
from training.swarm.optimizer import SwarmOptimizer
from training.swarm.others import epoch_of_half

__all__ = ["trainers"]
pytestmark = [pytest.mark.swarm, pytest.mark.timeout(240)]
CONFIG = config_make(target_batch_size=64, matchmaking_seconds=4.0)


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [([], None), ([3], 3), ([3, 9], 9), ([3, 3, 9], 3), ([4, 4, 3], 4), ([1, 2, 3, 4], 3)],
)
def test_half_of_the_others_must_be_ahead_before_anybody_follows(
    epochs: list[int], expected: int | None
) -> None:
    assert epoch_of_half(epochs) == expected


def known_to(optimizer: SwarmOptimizer, epoch: int) -> None:
    wait_until("the others' progress", lambda: optimizer.tracker.global_epoch == epoch, seconds=20)
    # The check that follows an epoch of its own has been passed already.
    optimizer._should_check_synchronization_on_update = False


def test_who_finds_the_others_one_epoch_ahead_follows_at_once_and_keeps_its_samples(
    tmp_path: Path,
) -> None:
    with (
        training_peer(tmp_path / "alice", CONFIG) as alice,
        training_peer(tmp_path / "bob", CONFIG, alice.addresses) as bob,
    ):
        model, ahead = parts(alice)
        gradients_set(model, 1.0)
        ahead.step(batch_size=64)
        assert ahead.local_epoch == 1
        ahead.step(batch_size=16)  # hivemind reports an epoch with samples only

        late_model, late = parts(bob)
        gradients_set(late_model, 2.0)
        known_to(late, 1)
        started = time.monotonic()
        late.step(batch_size=16)
        assert time.monotonic() - started < 4, "looking for a group is given up after 12 s"
        assert (late.local_epoch, late.finished) == (1, [])
        for own, theirs in zip(late_model.parameters(), model.parameters(), strict=True):
            assert torch.allclose(own, theirs)
        assert late.grad_averager.local_samples_accumulated == 16
        assert late.local_progress.samples_accumulated == 16
        assert late.tracker.performance_ema.samples_per_second < 1000, "kept, not computed anew"
        late.grad_averager.load_accumulators_into_averager_()
        with late.grad_averager.get_tensors() as tensors:
            assert all(torch.allclose(t, torch.full_like(t, 2.0)) for t in tensors)


def test_who_waits_for_a_group_that_others_have_had_stops_waiting(tmp_path: Path) -> None:
    with (
        training_peer(tmp_path / "alice", CONFIG) as alice,
        training_peer(tmp_path / "bob", CONFIG, alice.addresses) as bob,
    ):
        model, others = parts(alice)
        gradients_set(model, 1.0)
        others.step(batch_size=16)
        late_model, late = parts(bob)
        gradients_set(late_model, 2.0)
        late.step(batch_size=16)
        wait_until("both reports", lambda: late.num_peers == 2, seconds=20)

        def go_on() -> None:
            with others.tracker.pause_updates():
                others.state_averager.local_epoch = 1
                others.tracker.update_epoch(1)

        threading.Timer(1.0, go_on).start()
        started = time.monotonic()
        late.step(batch_size=48)
        assert 1 <= time.monotonic() - started < 6, "looking for a group is given up after 12 s"
        assert (late.local_epoch, late.finished) == (1, [])
        assert late.grad_averager.local_samples_accumulated == 64


def test_a_round_that_begins_and_ends_while_the_others_are_asked_is_no_round_missed(
    tmp_path: Path,
) -> None:
    """Its gradients are in that round's average; kept, they would enter the next one too."""
    with (
        training_peer(tmp_path / "alice", CONFIG) as alice,
        training_peer(tmp_path / "bob", CONFIG, alice.addresses) as bob,
    ):
        (model, others), (own_model, own) = parts(alice), parts(bob)
        gradients_set(model, 1.0)
        gradients_set(own_model, 2.0)
        others.step(batch_size=16)
        own.step(batch_size=16)
        wait_until("both reports", lambda: own.num_peers == others.num_peers == 2, seconds=20)
        asked: list[StepControl] = []
        look = own._look_ahead

        def look_slowly(control: StepControl) -> None:
            def epochs_late() -> list[int]:
                asked.append(control)
                is_over = lambda: control.stage is AveragingStage.FINISHED  # noqa: E731
                wait_until("the round", is_over, seconds=20)
                return [1]

            own._others_epochs = epochs_late  # type: ignore[method-assign]
            look(control)

        own._look_ahead = look_slowly  # type: ignore[method-assign,assignment]
        with ThreadPoolExecutor() as pool:
            step = pool.submit(own.step, batch_size=48)
            wait_until("the question", lambda: bool(asked), seconds=20)
            others.step(batch_size=32)
            step.result(60)
        (finished,) = own.finished
        assert (finished.epoch, finished.samples, finished.group_size) == (0, 64, 2)
        assert own.grad_averager.local_samples_accumulated == 0


@pytest.mark.parametrize("has_begun", [False, True])
def test_only_a_step_that_sent_nothing_leaves_gradients_for_the_next(has_begun: bool) -> None:
    control = StepControl(get_dht_time(), get_dht_time() + 60, False, 1.0, b"")
    control.attach(MPFuture(), MPFuture())
    control.stage = AveragingStage.LOOKING_FOR_GROUP

    def averager() -> None:
        if has_begun:
            control.stage = AveragingStage.RUNNING_ALLREDUCE
        control.stage = AveragingStage.FINISHED

    threading.Timer(0.2, averager).start()
    assert control_withdraw(control) is not has_begun
    assert control.cancelled()


def test_a_trainer_whose_swarm_process_dies_enters_anew(trainers: Trainers) -> None:
    for name in ("alice", "bob"):
        trainers.start(name)
    trainers.wait_epochs("bob", 1, group=2)
    leader = trainers.running["bob"].pid
    daemons = [p for p in session_members(leader) if comm(p) == "p2pd"]
    (dht,) = {parent(p) for p in daemons} - {leader}
    os.kill(dht, signal.SIGKILL)
    wait_until(
        "its word",
        lambda: any("entering anew" in event["text"] for event in trainers.events("bob", "line")),
    )
    trainers.wait_epochs("bob", 1, group=2)


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
