"""What differs between two versions of a config. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

_OWN = frozenset({"version", "lineage", "previous_sha256"})
"""Differ by themselves."""
_INCOMPATIBLE = ("task", "optimizer", "artifacts")
"""Peers that differ in one of these cannot average with each other."""


def config_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return changed fields as ``{"path", "old", "new"}``, with dotted paths in order.

    A field that is missing on one side counts as None there.
    """
    return [
        {"path": path, "old": before, "new": after}
        for path, before, after in _changes("", old, new)
        if path not in _OWN
    ]


def is_compatible(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether peers of both configs can train together."""
    return all(old.get(name) == new.get(name) for name in _INCOMPATIBLE)


def _changes(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            yield from _changes(f"{path}.{name}" if path else name, old.get(name), new.get(name))
    elif old != new:
        yield path, old, new
