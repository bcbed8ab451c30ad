"""All rooms of one process: who watches what, one subscription, and the ends of connections.

LOOP: one hub per event loop, made when the first viewer comes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

from web.core.events import live_ring
from web.core.figures import VIEWERS
from web.live.access import state_read, watchers_allowed
from web.live.frames import message_parse
from web.live.limits import SocketCounts
from web.live.room import Room, SnapshotReader
from web.live.source import source_run
from web.live.tasks import Lasting
from web.live.viewer import Line, Viewer, ending_access, ending_restart

log = logging.getLogger(__name__)

RECHECK_SECONDS = 30.0
"""Rights are looked at again so often even when nothing says that they changed."""
_FIRST_CONNECT_SECONDS = 2.0
"""A viewer waits so long for the subscription, then begins without."""
_GOODBYE_SECONDS = 3.0
_SOURCE = "live source"


class Hub:
    """Rooms by slug, and the tasks that feed and watch them while there is any."""

    def __init__(self, read_state: SnapshotReader = state_read) -> None:
        self.is_closing = False
        self._read_state = read_state
        self._rooms: dict[str, Room] = {}
        self._viewers: dict[str, set[Viewer]] = {}
        self.sockets = SocketCounts()
        jobs = {_SOURCE: self._source_run, "live access": self._recheck_run}
        self._tasks = Lasting(jobs, self._ended)
        self._tried = asyncio.Event()
        self._was_connected = False
        self._recheck = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @asynccontextmanager
    async def watching(
        self, slug: str, *, user_id: int | None, line: Line, since: int | None, known: int
    ) -> AsyncIterator[Viewer]:
        """Yield a viewer of a run, ready to be pumped, and forget it afterwards.

        It begins after ``since`` when the log reaches from there to ``known``, the number that
        the database has; else with a snapshot.
        """
        self._start()
        room = self._rooms.get(slug)
        if room is None:
            room = self._rooms[slug] = Room(slug, self._read_state)
        viewer = Viewer(room, user_id, line)
        VIEWERS.inc()
        self._viewers.setdefault(slug, set()).add(viewer)
        self._empty.clear()
        try:
            await self._listening()
            if since is not None and await self._can_replay(room, since, known):
                viewer.start_at(since)
            yield viewer
        finally:
            await self._leave(viewer)

    async def close(self) -> None:
        """Say goodbye to everybody, within a few seconds."""
        self.is_closing = True
        for viewer in self._everybody():
            viewer.end(ending_restart())
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._empty.wait()

    # --- listener of the source --------------------------------------------------------------

    def connected(self) -> None:
        """Listen; after an interruption everybody needs a snapshot."""
        if self._was_connected:
            log.warning("live subscription is back: %d viewers resync", len(self._everybody()))
        for room in self._rooms.values():
            room.missed()
        self._was_connected = True
        self._tried.set()

    def disconnected(self) -> None:
        """Go on from the database: told at every try, so everybody catches up as often."""
        for room in self._rooms.values():
            room.missed()
        self._tried.set()

    def message(self, slug: str, text: str) -> None:
        room = self._rooms.get(slug)
        if room is None:
            return
        try:
            room.receive(message_parse(text))
        except ValueError as error:
            log.warning("run %s: ignored on its channel: %s", slug, error)

    def access_changed(self) -> None:
        self._recheck.set()

    # --- inside --------------------------------------------------------------------------------

    async def _listening(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_CONNECT_SECONDS):
                await self._tried.wait()

    async def _can_replay(self, room: Room, since: int, known: int) -> bool:
        if not room.is_filled:
            room.fill(await asyncio.to_thread(live_ring, room.slug))
        return room.can_replay(since, known)

    async def _leave(self, viewer: Viewer) -> None:
        VIEWERS.dec()
        slug = viewer.room.slug
        viewers = self._viewers[slug]
        viewers.discard(viewer)
        if not viewers:
            del self._viewers[slug]
            self._rooms.pop(slug).close()
        if not self._rooms:
            self._empty.set()
            await self._tasks.stop()

    def _everybody(self) -> list[Viewer]:
        return [viewer for viewers in self._viewers.values() for viewer in viewers]

    def _start(self) -> None:
        # Only what was stopped in between, with nobody here, begins as if for the first time.
        if not self._tasks.is_running:
            self._tried.clear()
            self._was_connected = False
        self._tasks.start()

    def _ended(self, name: str) -> None:
        if name == _SOURCE:
            self.disconnected()  # nothing is heard until it is back

    async def _source_run(self) -> None:
        await source_run(self)

    async def _recheck_run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_SECONDS):
                    await self._recheck.wait()
            self._recheck.clear()
            for slug, viewers in list(self._viewers.items()):
                try:
                    await self._recheck_room(slug, set(viewers))
                except Exception:
                    # Whatever it is: it must not keep the others, or the next look, from theirs.
                    log.exception("run %s: rights of viewers could not be looked at", slug)

    async def _recheck_room(self, slug: str, viewers: set[Viewer]) -> None:
        allowed = await watchers_allowed(slug, {viewer.user_id for viewer in viewers})
        for viewer in viewers:
            if viewer.user_id not in allowed:
                viewer.end(ending_access())


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


def hub_get() -> Hub:
    """Return the hub of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
