"""The chain of audit entries: hashes over content and predecessor, and where they break. Pure."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

START: Final = "0" * 64
"""What the first entry names as its predecessor."""
MAX_TEXT = 4000
"""Characters of one text in an entry's data; longer ones are cut."""


@dataclass(frozen=True)
class Link:
    """An entry as the chain sees it."""

    seq: int
    previous: str
    hash: str
    content: Mapping[str, Any]
    """Everything but ``previous`` and ``hash``: see :func:`content_of`."""


@dataclass(frozen=True)
class Break:
    """The first entry that does not hold, and why."""

    seq: int
    text: str


def content_of(
    *,
    seq: int,
    at: datetime,
    actor_id: int | None,
    actor_name: str,
    code: str,
    target: str,
    run: str,
    data: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content that is hashed, in one form whatever the database."""
    return {
        "seq": seq,
        "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor_id": actor_id,
        "actor_name": actor_name,
        "code": code,
        "target": target,
        "run": run,
        "data": data,
    }


def link_hash(previous: str, content: Mapping[str, Any]) -> str:
    """Return SHA-256 over the predecessor's hash and the content's canonical JSON, in hex."""
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def plain(value: Any) -> Any:
    """Return a value in the form in which every database gives it back unchanged.

    PostgreSQL writes 1e22 as an integer and knows neither NaN nor a NUL in a text.
    """
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return _text(str(value))


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:MAX_TEXT]


def first_break(
    links: Iterable[Link],
    *,
    head: tuple[int, str] | None = None,
    known: Mapping[int, str] | None = None,
) -> Break | None:
    """Return the first entry that does not hold; None when all do.

    ``links`` in the order of their places, from the first. ``head`` (place and hash) is where the
    chain ends, ``known`` are hashes that earlier checks saw, by place.
    """
    place, previous = 0, START
    for link in links:
        broken = _fault(link, place + 1, previous, known or {})
        if broken:
            return Break(place + 1, broken)
        place, previous = link.seq, link.hash
    if head is not None and (place, previous) != head and head != (0, ""):
        text = f"the chain ends at entry {place}, but went on to entry {head[0]}"
        return Break(min(place, head[0]) + 1, text)
    return None


def _fault(link: Link, place: int, previous: str, known: Mapping[int, str]) -> str:
    if link.seq != place:
        return f"entry {place} is missing"
    if link.previous != previous:
        return f"entry {place} does not follow the one before it"
    if link.hash != link_hash(link.previous, link.content):
        return f"entry {place} was changed"
    if known.get(place, link.hash) != link.hash:
        return f"entry {place} is not the one that an earlier check saw"
    return ""
