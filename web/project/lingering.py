"""Websockets that have ended are gone soon, also when their client no longer takes anything.

The server itself (uvicorn) closes a socket once its buffer is written. The buffer of a client
that has stopped reading never is: socket and buffer would stay for as long as the client likes.
"""

import asyncio
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from web.core.figures import SOCKET_ENDINGS

LINGER_SECONDS = 5.0
"""From the end of a websocket to its being cut off; raise it for very thin lines."""


class CutProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, with a bound on how long an ended websocket may stay."""

    _cutting: asyncio.TimerHandle | None = None

    async def send(self, message: Any) -> None:
        """Send as uvicorn does; a message with ``wire`` is written as it is, without a copy."""
        wire = message.get("wire")
        if wire is None or self.close_sent or self.conn.state is not State.OPEN:
            await super().send(message)
            return
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected:
            raise ClientDisconnected
        self.transport.write(wire)

    async def run_asgi(self) -> None:
        await super().run_asgi()
        # Whoever was sent a close frame has its time for the answer first.
        self._cut_later(LINGER_SECONDS + (self.close_timeout if self.close_timer else 0.0))

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._cut_later(LINGER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._cutting is not None:
            self._cutting.cancel()
        super().connection_lost(exc)

    def _cut_later(self, seconds: float) -> None:
        if not self.disconnected and self._cutting is None:
            self._cutting = self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        SOCKET_ENDINGS.labels(reason="cut").inc()
        transport: Any = self.transport
        transport.abort()
