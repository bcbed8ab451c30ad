"""What the command line says: sentences for people, or one JSON document a line."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from training.client.errors import ClientError


class Output:
    """Where commands print; safe for use by several threads."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.writer: Callable[[str], None] | None = None
        """Where sentences go while something else draws on the terminal."""
        self._lock = threading.Lock()

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty() and not self.as_json

    def tell(self, text: str, **fields: object) -> None:
        """Say a sentence; with --json an object with ``text`` and the fields."""
        self._write(json.dumps({"text": text, **fields}, default=_plain) if self.as_json else text)

    def result(self, value: object, lines: Iterable[str]) -> None:
        """Give a command's result: the value as JSON, or its lines for people."""
        if self.as_json:
            self._write(json.dumps(value, default=_plain))
        else:
            for line in lines:
                self._write(line)

    def error(self, error: ClientError) -> None:
        """Say what went wrong and what to do; people's errors go to stderr."""
        if self.as_json:
            self._write(json.dumps({"error": error_fields(error)}))
            return
        sentence = error.detail[:1].upper() + error.detail[1:]
        with self._lock:
            sys.stderr.write(f"beeyard: {sentence.rstrip('.')}.\n  {error.remedy}\n")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        if self.writer is not None:
            self.writer(text)
            return
        with self._lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


def error_fields(error: ClientError) -> dict[str, object]:
    """Return an error as the API's problem documents spell it, with our exit code."""
    return {
        "code": error.code,
        "detail": error.detail,
        "remedy": error.remedy,
        "exit_code": int(error.exit_code),
    }


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as aligned lines."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
