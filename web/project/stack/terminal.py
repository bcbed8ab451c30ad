"""Where ``up`` says things: lines with the seconds since the start, and below them what happens."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.status import Status
from rich.text import Text


class Terminal(Protocol):
    def tell(self, text: str) -> None:
        """Say something that stays."""

    def status(self, text: str) -> None:
        """Replace what is shown to be happening now."""


class PlainTerminal:
    """Lines only, for logs and pipes."""

    def __init__(self) -> None:
        self._began_at = time.monotonic()

    def tell(self, text: str) -> None:
        seconds = time.monotonic() - self._began_at
        # A pipe that nobody reads any more must not keep the site from stopping in order.
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{seconds:6.1f} s  {text}\n")
            sys.stdout.flush()

    def status(self, text: str) -> None:
        return


class RichTerminal:
    """Lines, and one that changes below them."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console, self._status = console, status
        self._began_at = time.monotonic()

    def tell(self, text: str) -> None:
        line = Text(f"{time.monotonic() - self._began_at:6.1f} s  ", style="dim")
        line.append(text, style="none")
        with contextlib.suppress(OSError):
            self._console.print(line)

    def status(self, text: str) -> None:
        self._status.update(Text(text))


@contextlib.contextmanager
def terminal_open() -> Iterator[Terminal]:
    """Return the terminal that fits standard output."""
    console = Console()
    if not console.is_terminal:
        yield PlainTerminal()
        return
    with console.status("") as status:
        yield RichTerminal(console, status)
