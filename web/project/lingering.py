"""Websockets that have ended are gone soon, also when their client no longer takes anything.

The server itself (uvicorn) closes a socket once its buffer is written. The buffer of a client
that has stopped reading never is: socket and buffer would stay for as long as the client likes.
"""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from web.core.figures import SOCKET_ENDINGS
from web.live.viewer import WRITE

LINGER_SECONDS = 5.0
"""From the end of a websocket to its being cut off; raise it for very thin lines."""


class CutProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, with a bound on how long an ended websocket may stay."""

    _cutting: asyncio.TimerHandle | None = None

    async def run_asgi(self) -> None:
        self.scope["extensions"][WRITE] = {"write": self._write_now}
        await super().run_asgi()
        # Whoever was sent a close frame has its time for the answer first.
        self._cut_later(LINGER_SECONDS + (self.close_timeout if self.close_timer else 0.0))

    def _write_now(self, wire: bytes) -> bool:
        """Write a whole frame if that needs no waiting; return whether it did."""
        is_open = self.conn.state is State.OPEN and not (self.close_sent or self.disconnected)
        if not is_open or not self.writable.is_set():
            return False
        self.transport.write(wire)
        return True

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
