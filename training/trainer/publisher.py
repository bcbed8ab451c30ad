"""Publishes metrics beside the training: one slot, the newest wins, nobody waits."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Publisher(Generic[T]):
    """A thread that sends what was offered last, at most once per ``seconds``."""

    def __init__(self, send: Callable[[T], None], *, seconds: float) -> None:
        """``send`` may be slow and may fail; a failure is logged and the next one is tried."""
        self._send, self._seconds = send, seconds
        self._slot: T | None = None
        self._lock = threading.Lock()
        self._offered = threading.Event()
        self._stop = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def offer(self, item: T) -> None:
        """Put an item into the slot; returns at once."""
        with self._lock:
            self._slot = item
        self._offered.set()

    def stop(self, *, timeout: float) -> None:
        """Send what is in the slot and end, within ``timeout`` seconds or not at all."""
        self._stop.set()
        self._offered.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            self._offered.wait()
            self._send_slot()
            if self._stop.wait(self._seconds):
                self._send_slot()
                return

    def _send_slot(self) -> None:
        self._offered.clear()
        with self._lock:
            item, self._slot = self._slot, None
        if item is None:
            return
        try:
            self._send(item)
            self._is_failing = False
        except Exception as error:  # noqa: BLE001 - training goes on without being seen
            if not self._is_failing:
                _log.warning("metrics are not published: %s: %s", type(error).__name__, error)
            self._is_failing = True
