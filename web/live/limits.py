"""What one client may ask of a process."""

from collections import Counter
from typing import Any

from django.conf import settings

FRAMES = 20
FRAME_WINDOW_SECONDS = 10.0
"""More than FRAMES frames within the window close a socket; a browser sends none or few pings."""
FRAME_MAX_CHARACTERS = 200


class FrameBudget:
    """Frames that one socket may still send. Time is a monotonic clock's, in seconds."""

    def __init__(self, now: float) -> None:
        self._left = float(FRAMES)
        self._at = now

    def take(self, now: float) -> bool:
        """Count one frame; False when it is too many."""
        refill = (now - self._at) * FRAMES / FRAME_WINDOW_SECONDS
        self._left = min(float(FRAMES), self._left + refill)
        self._at = now
        self._left -= 1
        return self._left >= 0


class SocketCounts:
    """Open sockets by client address."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def enter(self, client: str) -> bool:
        """Count one more socket; False when the client has too many."""
        if self._counts[client] >= settings.LIVE_SOCKETS_PER_CLIENT:
            return False
        self._counts[client] += 1
        return True

    def leave(self, client: str) -> None:
        """Count one socket less."""
        self._counts[client] -= 1
        if self._counts[client] <= 0:
            del self._counts[client]


def scope_client(scope: dict[str, Any]) -> str:
    """Return the address a socket comes from; behind a proxy, the one that the proxy saw."""
    if settings.BEHIND_PROXY:
        for name, value in scope.get("headers", ()):
            if name == b"x-forwarded-for":
                return str(value.decode("latin-1").split(",")[-1].strip())
    client = scope.get("client") or ("",)
    return str(client[0])
