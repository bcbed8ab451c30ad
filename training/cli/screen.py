"""Showing a training: a progress display in a terminal, plain lines or JSON elsewhere.

The trainer only leaves its newest numbers here. A thread draws them, so that a paused terminal
or a full pipe never holds up the training.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from training.cli.output import Output
from training.trainer.session import TrainerStats

_DRAW_SECONDS = 0.5
_PLAIN_SECONDS = 10.0


class Face(Protocol):
    """One way of showing; called from the screen's thread only."""

    def say(self, text: str) -> None: ...

    def draw(self, phase: str, stats: TrainerStats | None) -> None: ...


class Screen:
    """A trainer's user interface (``TrainerUI``); no call ever waits."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._phase = ""
        self._stats: TrainerStats | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)

    def phase(self, text: str) -> None:
        self._phase = text

    def progress(self, stats: TrainerStats) -> None:
        self._stats = stats

    def line(self, text: str) -> None:
        self._lines.put(text)

    def start(self) -> None:
        """Begin to draw."""
        self._thread.start()

    def stop(self) -> None:
        """Say what is left and end."""
        self._stop.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stop.wait(_DRAW_SECONDS):
            self._show()
        self._show()

    def _show(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal or pipe has gone
            while True:
                try:
                    self._face.say(self._lines.get_nowait())
                except queue.Empty:
                    break
            self._face.draw(self._phase, self._stats)


class PlainFace:
    """Lines: each event, each new phase, and the numbers every few seconds."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._phase = ""
        self._drawn_at = float("-inf")
        self._drawn: TrainerStats | None = None

    def say(self, text: str) -> None:
        self._out.tell(text, event="line")

    def draw(self, phase: str, stats: TrainerStats | None) -> None:
        if phase != self._phase:
            self._phase = phase
            self._out.tell(phase, event="phase")
        now = time.monotonic()
        if stats is None or stats is self._drawn or now < self._drawn_at + _PLAIN_SECONDS:
            return
        self._drawn, self._drawn_at = stats, now
        self._out.tell(stats_sentence(stats), event="progress", **vars(stats))


def stats_sentence(stats: TrainerStats) -> str:
    """Return the numbers of a moment in words."""
    loss = "" if stats.loss is None else f", loss {stats.loss:.3f}"
    trainers = "1 trainer" if stats.num_peers == 1 else f"{stats.num_peers} trainers"
    return (
        f"epoch {stats.epoch}: {stats.samples_epoch:,} of {stats.target_batch_size:,} samples, "
        f"{stats.samples_per_second:.1f} samples/s here{loss}, {trainers}"
    )


@contextlib.contextmanager
def screen_open(out: Output, *, plain: bool) -> Iterator[Screen]:
    """Show a training until the block ends."""
    with contextlib.ExitStack() as stack:
        face: Face
        if plain or not out.is_terminal:
            face = PlainFace(out)
        else:
            from training.cli.live import LiveFace  # rich is slow to load

            face = stack.enter_context(LiveFace(out))
        screen = Screen(face)
        screen.start()
        try:
            yield screen
        finally:
            screen.stop()
