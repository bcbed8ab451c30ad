"""A browser's websocket, straight into the site's application."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from web.accounts.models import User
from web.monitoring.livestate import state_apply
from web.project.asgi import application

Result = TypeVar("Result")
QUIET_SECONDS = 0.3
"""Longer than two patches are apart."""


async def in_database(act: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Run a function that uses the database."""
    return await sync_to_async(act)(*args, **options)


def cookie_of(user: User) -> bytes:
    """Return the Cookie header of somebody who has logged in."""
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies['sessionid'].value}".encode()


class Socket:
    """An open socket that keeps its state as the page does."""

    def __init__(self, communicator: ApplicationCommunicator) -> None:
        self.communicator = communicator
        self.state: dict[str, Any] = {}
        self.frames: list[dict[str, Any]] = []

    async def send(self, text: str) -> None:
        await self.communicator.send_input({"type": "websocket.receive", "text": text})

    async def next(self, seconds: float = 3.0) -> dict[str, Any]:
        """Return the next frame and take it in."""
        event = await self.communicator.receive_output(seconds)
        assert event["type"] == "websocket.send", event
        frame: dict[str, Any] = json.loads(event["text"])
        self.frames.append(frame)
        if frame["type"] == "run.snapshot":
            self.state = frame["state"]
        elif frame["type"] == "run.patch":
            self.state = state_apply(self.state, frame["patch"])
        return frame

    async def settle(self, quiet_seconds: float = QUIET_SECONDS) -> list[str]:
        """Take frames until nothing comes for a while; return their types."""
        began = len(self.frames)
        while not await self.communicator.receive_nothing(quiet_seconds, 0.01):
            await self.next()
        return [frame["type"] for frame in self.frames[began:]]

    async def closed(self) -> int:
        """Return the code with which the server closes, after whatever it still sends."""
        while True:
            event = await self.communicator.receive_output(3.0)
            if event["type"] == "websocket.close":
                return int(event["code"])
            self.frames.append(json.loads(event["text"]))


async def handshake(
    path: str, headers: list[tuple[bytes, bytes]], query: str = ""
) -> tuple[ApplicationCommunicator, bool]:
    """Ask for a websocket; return whether it was opened."""
    scope = {
        "type": "websocket",
        "path": path,
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "subprotocols": [],
    }
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "websocket.connect"})
    event = await communicator.receive_output(3.0)
    return communicator, event["type"] == "websocket.accept"


@asynccontextmanager
async def socket_open(
    slug: str = "demo",
    *,
    user: User | None = None,
    since: object = None,
    origin: bytes | None = b"http://localhost:8000",
) -> AsyncIterator[Socket]:
    """Open ``/ws/runs/<slug>/`` as a browser does, perhaps of somebody who has logged in."""
    headers = [(b"origin", origin)] if origin else []
    if user is not None:
        headers.append((b"cookie", await in_database(cookie_of, user)))
    query = "" if since is None else f"since={since}"
    communicator, is_open = await handshake(f"/ws/runs/{slug}/", headers, query)
    assert is_open
    try:
        yield Socket(communicator)
    finally:
        await communicator.send_input({"type": "websocket.disconnect", "code": 1001})
        await communicator.wait(3.0)
