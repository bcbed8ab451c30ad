"""What people see while training, and that looking never holds training up."""

import io
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.conftest import stats_make
from training.cli import screen as screen_module
from training.cli.live import LiveFace
from training.cli.output import Output
from training.cli.screen import PlainFace, Screen, screen_open, stats_sentence
from training.trainer.session import TrainerStats

SIGNALS = """
import sys, time
from training.cli.signals import StopSignals
with StopSignals() as signals:
    signals.on_first(lambda: print("asked", flush=True))
    print("ready", flush=True)
    signals.stop.wait(20)
    while True:
        time.sleep(0.1)
"""


class Lines(Output):
    """An output that keeps what is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.writer = self.told.append


def test_plain_lines_tell_phases_events_and_numbers_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter([0.0, 1.0, 11.0, 11.5])
    monkeypatch.setattr(screen_module.time, "monotonic", lambda: next(moments))
    out = Lines()
    face = PlainFace(out)
    for epoch in (1, 2, 3):
        face.draw("training", stats_make(epoch=epoch))
    face.say("epoch 3 is done")
    face.draw("averaging", stats_make(epoch=4))
    told = [text.split(":")[0] for text in out.told]
    assert told == ["training", "epoch 1", "epoch 3", "epoch 3 is done", "averaging"]


def test_the_numbers_read_well() -> None:
    assert stats_sentence(stats_make()) == (
        "epoch 3: 512 of 1,024 samples, 41.2 samples/s here, loss 5.125, 2 trainers"
    )
    assert stats_sentence(stats_make(loss=None, num_peers=1)).endswith("here, 1 trainer")


def test_the_display_shows_progress_and_lets_events_scroll_by() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    out = Output()
    with LiveFace(out, console) as face:
        face.draw("joining", None)
        face.draw("training", stats_make())
        out.tell("counted: [512] samples (epoch 12)")
        face.draw("training", stats_make(samples_epoch=5000))
    shown = stream.getvalue()
    for words in ("joining", "epoch 3 training", "512/1,024", "loss 5.125", "counted: [512]"):
        assert words in shown
    assert out.writer is None


class Stuck:
    """A face whose terminal was paused."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.release.wait(20)
        self.said.append(text)

    def draw(self, phase: str, stats: TrainerStats | None) -> None:
        self.release.wait(20)


def test_a_paused_terminal_does_not_hold_up_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screen_module, "_DRAW_SECONDS", 0.01)
    stuck = Stuck()
    screen = Screen(stuck)
    screen.start()
    time.sleep(0.1)
    started = time.monotonic()
    for epoch in range(1000):
        screen.phase("training")
        screen.progress(stats_make(epoch=epoch))
        screen.line(f"epoch {epoch}")
    assert time.monotonic() - started < 1.0
    stuck.release.set()
    screen.stop()
    assert stuck.said == [f"epoch {epoch}" for epoch in range(1000)]


def test_a_pipe_that_closed_is_no_error() -> None:
    class Closed(Stuck):
        def say(self, text: str) -> None:
            raise BrokenPipeError

    screen = Screen(Closed())
    screen.start()
    screen.line("hello")
    screen.stop()
    assert not screen._thread.is_alive()


def test_what_was_said_last_is_shown_before_the_end() -> None:
    out = Lines()
    with screen_open(out, plain=True) as screen:
        screen.phase("training")
        screen.line("epoch 1 is done")
    assert out.told == ["epoch 1 is done", "training"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_and_the_second_ends_at_once(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SIGNALS], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "asked\n"
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()
