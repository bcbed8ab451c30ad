"""What a run of this site may train: built-in tasks and presets, and tasks that an admin allows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from web.runs.models import AllowedTask

_FOLDER = Path(__file__).parent
CUSTOM = "task:"
"""Begins the key of a preset that is a bare task."""


@dataclass(frozen=True)
class TaskInfo:
    """A task as the site knows it: never its code."""

    name: str
    summary: str
    params_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema; empty: the site cannot check parameters."""


@dataclass(frozen=True)
class Preset:
    """A config to begin with."""

    key: str
    title: str
    summary: str
    draft: Mapping[str, Any]


@cache
def tasks_built_in() -> dict[str, TaskInfo]:
    """Return the tasks that every trainer has, by name."""
    entries = [json.loads(path.read_text()) for path in sorted(_FOLDER.glob("task-*.json"))]
    return {entry["name"]: TaskInfo(**entry) for entry in entries}


@cache
def presets_built_in() -> tuple[Preset, ...]:
    """Return the configs that come with the site."""
    return tuple(Preset(**item) for item in json.loads((_FOLDER / "presets.json").read_text()))


def tasks_allowed() -> dict[str, TaskInfo]:
    """Return all tasks that a config may name, in one query."""
    rows = {
        row.name: TaskInfo(row.name, row.summary, row.params_schema)
        for row in AllowedTask.objects.all()
    }
    return rows | tasks_built_in()


def presets() -> tuple[Preset, ...]:
    """Return what a run can be made from: built-in presets, then one for each allowed task."""
    own = [
        Preset(f"{CUSTOM}{task.name}", task.name, task.summary or "A task of this site.",
               {"task": {"name": task.name, "params": params_default(task.params_schema)}})
        for task in tasks_allowed().values()
        if task.name not in tasks_built_in()
    ]  # fmt: skip
    return (*presets_built_in(), *own)


def params_default(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that a schema names."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {
        name: spec["default"]
        for name, spec in properties.items()
        if isinstance(spec, Mapping) and "default" in spec
    }
