"""Tasks that must not end: whichever does is begun again, after a pause that grows to a bound.

LOOP: everything here runs on the event loop.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

log = logging.getLogger(__name__)

PAUSE_SECONDS = (0.5, 30.0)
"""Before the first try and at most; one that ran for longer than the longest begins anew."""

Job = Callable[[], Coroutine[Any, Any, None]]


class Lasting:
    """Jobs by name, each one task. ``ended`` is told the name of one that ended by itself."""

    def __init__(self, jobs: Mapping[str, Job], ended: Callable[[str], None]) -> None:
        self._jobs, self._ended = jobs, ended
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._pauses: dict[str, float] = {}

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return bool(self._tasks)

    def start(self) -> None:
        """Begin whatever was not begun; what has ended waits for its next try."""
        for name in self._jobs:
            if name not in self._tasks:
                self._begin(name)

    async def stop(self) -> None:
        """End all of them."""
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._tasks.values())
        self._tasks, self._timers, self._pauses = {}, {}, {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, name: str) -> None:
        self._timers.pop(name, None)
        began = time.monotonic()
        task = self._tasks[name] = asyncio.create_task(self._jobs[name](), name=name)
        task.add_done_callback(lambda done: self._done(name, done, began))

    def _done(self, name: str, task: "asyncio.Task[None]", began: float) -> None:
        error = None if task.cancelled() else task.exception()
        if self._tasks.get(name) is not task:
            return  # stopped
        shortest, longest = PAUSE_SECONDS
        is_steady = time.monotonic() - began > longest
        pause = shortest if is_steady else self._pauses.get(name, shortest)
        self._pauses[name] = min(longest, 2 * pause)
        self._timers[name] = asyncio.get_running_loop().call_later(pause, self._begin, name)
        log.critical("%s has ended: begun again in %.1f s", name, pause, exc_info=error)
        self._ended(name)
