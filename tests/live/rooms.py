"""Rooms, messages and viewers without a database."""

import asyncio
import json
from typing import Any

from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from web.live.frames import Message, message_parse
from web.live.room import Room
from web.live.viewer import Line, Viewer
from web.monitoring.livestate import state_apply


class Truth:
    """Stands for the database: a state that is changed and read."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"seq": 0, "as_of": None, "n": 0, "peers": {}}
        self.reads = 0

    async def read(self, slug: str) -> dict[str, Any]:
        self.reads += 1
        await asyncio.sleep(0)
        return dict(self.state)

    def change(self, **patch: Any) -> Message:
        """Change the state and return the message that says so."""
        patch = {"seq": self.state["seq"] + 1, **patch}
        self.state = state_apply(self.state, patch)
        return patch_message(patch["seq"], patch)


def patch_message(seq: int, patch: dict[str, Any]) -> Message:
    return message_parse(
        json.dumps({"type": "run.patch", "seq": seq, "as_of": "t", "patch": patch})
    )


def event_message(seq: int, text: str = "x") -> Message:
    event = {"kind": "peer.joined", "text": text, "at": "t"}
    return message_parse(
        json.dumps({"type": "run.event", "seq": seq, "as_of": "t", "event": event})
    )


class Client:
    """A socket: takes frames, as slowly as told, and keeps the state as a browser does."""

    writes_at_once = False
    """Whether its server knows the way without a task switch."""

    def __init__(self, room: Room) -> None:
        self.frames: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.can_read = asyncio.Event()
        self.can_read.set()
        self.viewer = Viewer(
            room, None, Line(self._take, self._write if self.writes_at_once else None)
        )
        self.task: asyncio.Task[None] | None = None

    def _write(self, wire: bytes) -> bool:
        if self.can_read.is_set():
            parser = ClientProtocol(parse_uri("ws://x/"), state=State.OPEN, max_size=None)
            parser.receive_data(wire)
            for frame in parser.events_received():
                assert isinstance(frame, Frame)
                self._read(bytes(frame.data).decode())
        return self.can_read.is_set()

    async def _take(self, text: str) -> None:
        await self.can_read.wait()
        self._read(text)

    def _read(self, text: str) -> None:
        frame = json.loads(text)
        self.frames.append(frame)
        if frame["type"] == "run.snapshot":
            self.state = frame["state"]
        elif frame["type"] == "run.patch":
            self.state = state_apply(self.state, frame["patch"])

    def start(self) -> "Client":
        self.task = asyncio.create_task(self.viewer.pump())
        return self

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    @property
    def kinds(self) -> list[str]:
        return [frame["type"].removeprefix("run.") for frame in self.frames]


async def settled(seconds: float = 0.06) -> None:
    """Let ticks happen (tests make them short)."""
    await asyncio.sleep(seconds)
