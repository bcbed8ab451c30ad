"""Stopping: the first signal asks politely, the second does not wait."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

EXIT_AT_ONCE = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Turns SIGINT and SIGTERM into an event.

    ``stop`` is set at the first one: the trainer finishes its micro-step and leaves. At the
    second, ``at_once`` is called (by default this process and its children are killed, since
    hivemind's children outlive their parent).
    """

    def __init__(self, *, at_once: Callable[[], None] | None = None) -> None:
        self.stop = threading.Event()
        self._at_once = at_once or _die
        self._asked = 0
        self._tell: Callable[[], None] = lambda: None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.getsignal(number)
        self.install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def install(self) -> None:
        """Take the signals (again: making an averager sets SIGINT to be ignored)."""
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def on_first(self, tell: Callable[[], None]) -> None:
        """Have ``tell`` called, from another thread, when the first signal comes."""
        self._tell = tell

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        if self._asked > 1:
            self._at_once()
            return
        # An event's lock may be held by the very thread that the signal interrupts.
        threading.Thread(target=self._begin, name="stop", daemon=True).start()

    def _begin(self) -> None:
        self.stop.set()
        self._tell()


def _die() -> None:
    """End this process and its children now."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    os._exit(EXIT_AT_ONCE)
