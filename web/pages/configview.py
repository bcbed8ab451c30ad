"""A run's config as people read it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TITLES: Final[dict[str, str]] = {
    "task": "What is trained",
    "optimizer": "Optimizer",
    "swarm": "Swarm",
    "checkpoint": "Checkpoints",
    "report": "Reporting",
}


@dataclass(frozen=True)
class ConfigGroup:
    title: str
    rows: tuple[tuple[str, str], ...]


def config_groups(body: Mapping[str, Any]) -> list[ConfigGroup]:
    """Return a config as titled lists of (name, value)."""
    plain = {k: v for k, v in body.items() if k not in TITLES and k != "artifacts"}
    groups = [ConfigGroup("Run", _rows(plain))]
    for name, title in TITLES.items():
        if name in body:
            groups.append(ConfigGroup(title, _rows(body[name])))
    files = tuple(
        (item["name"], f"{item['size']:,} bytes, sha256 {item['sha256'][:16]}…")
        for item in body.get("artifacts", ())
    )
    return [*groups, ConfigGroup("Files", files)] if files else groups


def _rows(values: Mapping[str, Any], prefix: str = "") -> tuple[tuple[str, str], ...]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows.extend(_rows(value, f"{prefix}{name}."))
        elif value is not None:
            rows.append((f"{prefix}{name}".replace("params.", "").replace("_", " "), str(value)))
    return tuple(rows)
