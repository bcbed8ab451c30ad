"""The pipe into the DHT's process, for several writers at once."""

import multiprocessing
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final

_HELD_SECONDS: Final = 10.0
"""A write takes microseconds: whoever holds the lock for so long was killed in the middle."""


class SharedPipe:
    """Lets one message through at a time, whichever process or thread it comes from.

    hivemind's threads and the averagers that it forks all write to one pipe. The system keeps
    only small writes whole: when the DHT's process is slow and the pipe is full, two messages
    come out mixed, and that process dies of it.
    """

    def __init__(self, connection: Connection) -> None:
        """Make it before the writers are forked: they inherit the lock."""
        self._connection = connection
        self._lock = multiprocessing.get_context("fork").Lock()

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            OSError: the other end is gone, or the pipe is closed.
        """
        self._lock.acquire(timeout=_HELD_SECONDS)
        try:
            self._connection.send(message)
        finally:
            with suppress(ValueError):  # somebody took it for abandoned meanwhile
                self._lock.release()

    def close(self) -> None:
        """Close this process's end."""
        self._connection.close()
