"""A run that somebody watches: its last messages, kept once for all its viewers.

LOOP: everything here runs on the event loop. A viewer owns nothing but its place in the log, so
that a slow one costs no memory and delays nobody: when it comes back it gets one merged patch,
or a whole snapshot when the log no longer reaches back to its place.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from web.core.events import RING_SIZE, ring_trim
from web.live.frames import FrameText, Message, State, frames_make, message_parse, snapshot_frame

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
"""Viewers are woken at most this often: two patches a second."""
SNAPSHOT_SECONDS = 1.0
"""So long a snapshot may serve several viewers when nothing newer is known."""
_GATHER_SECONDS = 0.02
"""One change is several messages, published one after the other."""

SnapshotReader = Callable[[str], Awaitable[State]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole state as it is sent, and what it is worth."""

    seq: int
    text: FrameText
    generation: int
    read_at: float


class Waiting(Protocol):
    """Somebody who has everything that the log has."""

    def tick(self) -> bool:
        """Take what is new at once, or return False."""

    def wake(self) -> None:
        """Begin to take it in a task of its own."""


class Room:
    """The log of one run. ``generation`` grows when messages may have been missed unseen."""

    def __init__(self, slug: str, read_state: SnapshotReader) -> None:
        self.slug = slug
        self.generation = 0
        self.is_filled = False
        """Whether the kept ring was read into the log."""
        self._read_state = read_state
        self._log: deque[Message] = deque(maxlen=RING_SIZE)
        self._made: dict[int, list[FrameText]] = {}
        self.num_ticks = 0
        self._idle: set[Waiting] = set()
        self._ticked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._kept: Snapshot | None = None
        self._reading: asyncio.Task[Snapshot] | None = None

    @property
    def last(self) -> int:
        """The number of the newest message, 0 when none is known."""
        return self._log[-1].seq if self._log else 0

    @property
    def base(self) -> int | None:
        """The number before the oldest message, None when none is known."""
        return self._log[0].seq - 1 if self._log else None

    def receive(self, message: Message) -> None:
        """Take a message in. After a gap only what follows it is kept."""
        if self._log and message.seq <= self.last:
            return  # sent again, or overtaken: after the gap it left, everybody read the database
        if self._log and message.seq > self.last + 1:
            self._log.clear()
        self._log.append(message)
        ring_trim(self._log, _size)
        self._made.clear()
        self._tick_soon()

    def fill(self, texts: Iterable[str]) -> None:
        """Add the kept ring to what was received since the subscription began."""
        known: dict[int, Message] = {}
        for text in texts:
            try:
                message = message_parse(text)
            except ValueError as error:
                log.warning("run %s: the ring holds %s", self.slug, error)
                continue
            known[message.seq] = message
        known |= {message.seq: message for message in self._log}
        ordered = [known[seq] for seq in sorted(known)]
        gaps = [i for i, (a, b) in enumerate(pairwise(ordered), 1) if b.seq != a.seq + 1]
        self._log = deque(ordered[gaps[-1] if gaps else 0 :], maxlen=RING_SIZE)
        ring_trim(self._log, _size)
        self._made.clear()
        self.is_filled = True

    def can_replay(self, since: int, known: int) -> bool:
        """Whether the log leads from ``since`` to at least ``known``, the database's number."""
        return self.base is not None and self.base <= since <= self.last and known <= self.last

    def frames_since(self, cursor: int, generation: int) -> list[FrameText] | None:
        """Return the frames after ``cursor``; None when only a snapshot helps.

        Made once for all viewers at the same place.
        """
        if generation != self.generation:
            return None
        if self.base is None or cursor >= self.last:
            return []
        if cursor < self.base:
            return None
        if cursor not in self._made:
            later = [message for message in self._log if message.seq > cursor]
            self._made[cursor] = [FrameText(text) for text in frames_make(later)]
        return self._made[cursor]

    def missed(self) -> None:
        """Messages may have been lost: everybody needs a snapshot."""
        self.generation += 1
        self._log.clear()
        self._made.clear()
        self._tick_soon()

    def idle(self, viewer: Waiting, ticks: int) -> bool:
        """Let a viewer wait for the next tick; False when one came since ``num_ticks`` was that."""
        if ticks != self.num_ticks:
            return False
        self._idle.add(viewer)
        return True

    def leave(self, viewer: Waiting) -> None:
        """Forget that it waits."""
        self._idle.discard(viewer)

    async def snapshot(self) -> Snapshot:
        """Return a state that is not older than anything the log knew at the call."""
        if self._kept is not None and self._is_fresh(self._kept):
            return self._kept
        kept = await self._read_shared()
        # A read that others had begun before may have missed what the log knew already.
        return kept if self._is_fresh(kept) else await self._read_shared()

    def close(self) -> None:
        """Stop the timers; nobody watches any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()

    async def _read_shared(self) -> Snapshot:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(self._reading)

    def _is_fresh(self, kept: Snapshot) -> bool:
        is_recent = time.monotonic() - kept.read_at < SNAPSHOT_SECONDS
        return is_recent and kept.generation == self.generation and kept.seq >= self.last

    async def _read(self) -> Snapshot:
        generation, known, began = self.generation, self.last, time.monotonic()
        state = await self._read_state(self.slug)
        if state["seq"] < known:
            log.warning("run %s: messages up to %d are of another database", self.slug, known)
            self._log.clear()
            self._made.clear()
        self._kept = Snapshot(state["seq"], FrameText(snapshot_frame(state)), generation, began)
        return self._kept

    def _tick_soon(self) -> None:
        if self._timer is None:
            wait = max(_GATHER_SECONDS, self._ticked_at + TICK_SECONDS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._tick_now)

    def _tick_now(self) -> None:
        self._timer = None
        self._ticked_at = time.monotonic()
        self.num_ticks += 1
        idle, self._idle = self._idle, set()
        for viewer in idle:
            if viewer.tick():
                self._idle.add(viewer)
            else:
                viewer.wake()


def _size(message: Message) -> int:
    return len(message.text)
