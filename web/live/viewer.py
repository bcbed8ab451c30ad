"""One socket on a room: its place in the log, and the loop that brings it forward."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from web.live.frames import bye_frame
from web.live.room import TICK_SECONDS, Room

SEND_SECONDS = 30.0
"""A client that takes nothing for so long is dropped; raise it for very thin lines."""
_NEW = -1
"""No generation of any room: begin with a snapshot."""
_EARLY = 0.05
"""Ticks are that far from exact."""

CLOSE_RESTART = 1012
CLOSE_SLOW = 1013
CLOSE_GARBAGE = 4400
CLOSE_FORBIDDEN = 4403
CLOSE_UNKNOWN = 4404
CLOSE_TOO_MANY = 4429

_NAMES = {
    CLOSE_GARBAGE: "garbage",
    CLOSE_FORBIDDEN: "forbidden",
    CLOSE_UNKNOWN: "unknown",
    CLOSE_TOO_MANY: "too_many",
}

WRITE = "beeyard.write"
"""The ASGI extension by which our server writes a ready frame, if that needs no waiting."""
_MAX_AT_ONCE = 4
"""Frames that are written without looking whether the client takes them."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why and how a connection ends."""

    code: int
    reason: str = ""
    """Said in a run.bye when given."""
    retry_after: float = 0.0
    seq: int = 0

    @property
    def name(self) -> str:
        """Return what figures call it."""
        return self.reason or _NAMES[self.code]

    def frame(self) -> str:
        """Return the bye."""
        return bye_frame(self.seq, reason=self.reason, retry_after=self.retry_after)


def ending_restart() -> Ending:
    """Return the ending of a server that goes; spread, lest all come back at once."""
    return Ending(CLOSE_RESTART, "restart", round(random.uniform(1.0, 5.0), 1))  # noqa: S311


def ending_slow() -> Ending:
    """Return the ending of a client that takes nothing; its line may be better in a while."""
    return Ending(CLOSE_SLOW, "slow", round(random.uniform(5.0, 15.0), 1))  # noqa: S311


def ending_access() -> Ending:
    """Return the ending for somebody who may not watch any more."""
    return Ending(CLOSE_FORBIDDEN, "access_ended", 60.0)


@dataclass(frozen=True, slots=True)
class Line:
    """The two ways to a client."""

    send: Callable[[str], Awaitable[None]]
    """Waits while the client takes nothing."""
    write: Callable[[bytes], bool] | None = None
    """Writes a frame's bytes at once, or returns False. None where the server cannot."""


class Viewer:
    """A socket's place in a run. ``user_id`` None: nobody in particular."""

    def __init__(self, room: Room, user_id: int | None, line: Line) -> None:
        self.room = room
        self.user_id = user_id
        self.cursor = 0
        self._generation = _NEW
        self._line = line
        self._woken = asyncio.Event()
        self._next_at = 0.0
        self._sending_since: float | None = None
        self.ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def start_at(self, since: int) -> None:
        """Begin with what came after ``since`` instead of a snapshot."""
        self.cursor = since
        self._generation = self.room.generation

    def end(self, ending: Ending) -> None:
        """Ask the connection to end; the first reason counts."""
        if not self.ending.done():
            self.ending.set_result(ending)

    async def pump(self) -> None:
        """Send what is new, for ever; a client that takes nothing for too long is ended."""
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(SEND_SECONDS, self._look, loop)
        try:
            while True:
                ticks = self.room.num_ticks
                await self._flush()
                self._woken.clear()
                if self.room.idle(self, ticks):
                    await self._woken.wait()
                wait = self._next_at - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
        finally:
            self._watch.cancel()
            self.room.leave(self)

    def tick(self) -> bool:
        """Take what is new without a task switch; return whether there is nothing more to do."""
        if self._line.write is None or time.monotonic() < self._next_at:
            return False
        last = self.room.last
        frames = self.room.frames_since(self.cursor, self._generation)
        if frames is None or len(frames) > _MAX_AT_ONCE:
            return False
        if frames:
            if not self._line.write(b"".join(frame.wire for frame in frames)):
                return False
            self._next_at = time.monotonic() + TICK_SECONDS - _EARLY
        self.cursor = max(self.cursor, last)
        return True

    def wake(self) -> None:
        """Let :meth:`pump` see to it."""
        self._woken.set()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        # One timer for all sends: one for each cost as much as the send.
        spent = 0.0 if self._sending_since is None else time.monotonic() - self._sending_since
        if spent >= SEND_SECONDS:
            self.end(ending_slow())
        else:
            self._watch = loop.call_later(SEND_SECONDS - spent, self._look, loop)

    async def _flush(self) -> None:
        began = time.monotonic()
        last = self.room.last
        frames = self.room.frames_since(self.cursor, self._generation)
        if frames is None:
            snapshot = await self.room.snapshot()
            has_it = self._generation != _NEW and snapshot.seq == self.cursor
            self.cursor, self._generation = snapshot.seq, snapshot.generation
            frames = [] if has_it else [snapshot.text]
        else:
            self.cursor = max(self.cursor, last)
        if not frames:
            return
        self._next_at = began + TICK_SECONDS - _EARLY
        self._sending_since = time.monotonic()
        for frame in frames:
            await self._line.send(frame)
        self._sending_since = None
