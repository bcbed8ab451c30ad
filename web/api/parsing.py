"""How bodies are read: JSON in UTF-8, of plain values."""

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

_NUL = "\\u0000"
"""As JSON writes it: PostgreSQL keeps no text with it."""


class JsonParser(Parser):
    """Stricter than Python's reader, which takes NaN, and UTF-16, and texts with NUL."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body.

        Raises:
            ValueError, RecursionError: it is not JSON (RFC 8259), or has a NUL in it.
        """
        text = request.body.decode("utf-8")
        if _NUL in text:
            raise ValueError("a NUL character in a text")
        return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
