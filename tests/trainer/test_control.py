"""Commands take effect, and nobody waits for them."""

import threading
import time

from training.protocol.states import Command, PeerState
from training.trainer.control import TrainerControl


def test_pause_and_resume() -> None:
    control = TrainerControl()
    control.command(Command.PAUSE)
    assert control.is_paused
    control.command(Command.RESUME)
    assert not control.is_paused
    assert not control.stopping.is_set()


def test_resuming_again_and_again_does_nothing() -> None:
    """Sites say it with every heartbeat."""
    control = TrainerControl()
    for _ in range(3):
        control.command(Command.RESUME)
    assert not control.is_paused
    assert not control.stopping.is_set()
    assert not control.reload_taken()
    assert not control.run_is_over


def test_finish_ends_the_run() -> None:
    control = TrainerControl()
    control.command(Command.FINISH)
    assert control.stopping.is_set()
    assert control.run_is_over


def test_stop_leaves_the_run_open() -> None:
    control = TrainerControl()
    control.stop()
    assert control.stopping.is_set()
    assert not control.run_is_over


def test_a_reload_is_taken_once() -> None:
    control = TrainerControl()
    control.command(Command.RELOAD_STATE)
    assert control.reload_taken()
    assert not control.reload_taken()


def test_progress_keeps_what_is_not_told_anew() -> None:
    control = TrainerControl()
    assert control.progress().state is PeerState.JOINING
    control.report(epoch=4, samples_total=128, state=PeerState.TRAINING)
    control.report(epoch=5)
    told = control.progress()
    assert (told.epoch, told.samples, told.state) == (5, 128, PeerState.TRAINING)


def test_waiting_ends_with_a_command_or_a_stop() -> None:
    control = TrainerControl()
    assert not control.wait(0.01)
    threading.Timer(0.1, control.command, [Command.RESUME]).start()
    started = time.monotonic()
    assert not control.wait(10)
    threading.Timer(0.1, control.stop).start()
    assert control.wait(10)
    assert control.wait(10)
    assert time.monotonic() - started < 5
