"""A draft as its form shows it: fields in groups, each with value, help and error."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from web.runs.catalogue import TaskInfo
from web.runs.config_diff import config_diff
from web.runs.draft_body import artifacts_of, body_errors, body_own, text_at
from web.runs.models import Artifact, ConfigDraft, Run, RunConfigVersion
from web.runs.schema_fields import ConfigField, config_fields, params_fields
from web.runs.selectors import draft_is_behind

_TITLES: Final = {
    "": ("Run", "What it is called, when it ends, and who may take part."),
    "task": ("What is trained", "The task and the sizes of its model."),
    "optimizer": ("Optimizer", "How the model learns from each average."),
    "swarm": ("Swarm", "How peers find each other and average."),
    "checkpoint": ("Checkpoints", "When the state is saved."),
    "evaluation": ("Evaluation", "How saved states are measured."),
    "report": ("Reporting", "Who tells what to whom, how often."),
}
_LONG: Final = frozenset({"title", "task.name"})


@dataclass(frozen=True)
class FieldRow:
    """One input. ``choices``: pairs of value and words; empty: a text."""

    field: ConfigField
    value: str
    error: str = ""
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        return "f-" + self.field.name.replace(".", "-")

    @property
    def mode(self) -> str:
        """Which keyboard a phone shows."""
        return {"integer": "numeric", "number": "decimal"}.get(self.field.kind, "text")

    @property
    def is_wide(self) -> bool:
        return self.field.kind == "json" or self.field.name in _LONG

    @property
    def default(self) -> str:
        value = self.field.default
        return "" if value is None or value == [] else text_at({"x": value}, _AT_X)


_AT_X = ConfigField(("x",), "text")


@dataclass
class Group:
    key: str
    title: str
    summary: str
    rows: list[FieldRow] = field(default_factory=list)

    @property
    def num_errors(self) -> int:
        return sum(bool(row.error) for row in self.rows)


def fields_for(task: str, tasks: Mapping[str, TaskInfo]) -> tuple[ConfigField, ...]:
    """Return all fields of a draft that names this task."""
    info = tasks.get(task)
    return (*config_fields(), *params_fields(info.params_schema if info else {}))


def task_named(body: Mapping[str, Any]) -> str:
    """Return the name of a draft's task, empty when it has none."""
    task = body.get("task")
    return str(task.get("name") or "") if isinstance(task, Mapping) else ""


def errors_of(run: Run, body: Mapping[str, Any], tasks: Mapping[str, TaskInfo]) -> dict[str, str]:
    """Return what does not fit in a draft, by dotted path."""
    info = tasks.get(task_named(body))
    errors = body_errors(body, info.params_schema if info else {}, title=run.title)
    if info is None and "task.name" not in errors:
        errors["task.name"] = "This site allows no such task."
    return errors


def groups_of(
    body: Mapping[str, Any],
    errors: Mapping[str, str],
    tasks: Mapping[str, TaskInfo],
    *,
    title: str,
) -> list[Group]:
    """Return the fields of a draft in their groups; ``title`` is the run's, its default."""
    groups = {key: Group(key, *words) for key, words in _TITLES.items()}
    for item in fields_for(task_named(body), tasks):
        if item.name == "title":
            item = replace(item, default=title)
        key = item.path[0] if len(item.path) > 1 else ""
        value = text_at(body, item)
        choices = _choices(item, value, tasks)
        row = FieldRow(item, value, errors.get(item.name, ""), choices)
        groups.setdefault(key, Group(key, key.capitalize(), "")).rows.append(row)
    return [group for group in groups.values() if group.rows]


def errors_elsewhere(errors: Mapping[str, str], groups: Iterable[Group]) -> list[tuple[str, str]]:
    """Return the errors that stand beside no field."""
    shown = {row.field.name for group in groups for row in group.rows}
    return [(path, text) for path, text in errors.items() if path not in shown]


def file_rows(body: Mapping[str, Any], stored: Iterable[Artifact]) -> list[dict[str, Any]]:
    """Return the files that can be ticked; those of the draft first, also ones that are missing."""
    chosen = {str(entry.get("sha256")): entry for entry in artifacts_of(body)}
    rows = [
        {"name": chosen.get(a.sha256, {}).get("name", a.name), "sha256": a.sha256, "size": a.size,
         "is_chosen": a.sha256 in chosen, "is_stored": True}
        for a in stored
    ]  # fmt: skip
    known = {row["sha256"] for row in rows}
    rows += [
        {"name": str(entry.get("name"))[:80], "sha256": sha256[:64], "size": 0,
         "is_chosen": True, "is_stored": False}
        for sha256, entry in chosen.items()
        if sha256 not in known
    ]  # fmt: skip
    return sorted(rows, key=lambda row: not row["is_chosen"])


def files_ticked(
    body: Mapping[str, Any], hashes: Iterable[str], stored: Iterable[Artifact]
) -> list[dict[str, Any]]:
    """Return the files of a draft as ticked in its form."""
    wanted = set(hashes)
    known = {a.sha256: {"name": a.name, "sha256": a.sha256, "size": a.size} for a in stored}
    # A file keeps the name that the draft gave it.
    known |= {str(entry.get("sha256")): entry for entry in artifacts_of(body)}
    return [entry for sha256, entry in known.items() if sha256 in wanted]


def differences(
    mine: Mapping[str, Any],
    theirs: Mapping[str, Any],
    tasks: Mapping[str, TaskInfo],
    *,
    title: str,
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the fields in which two drafts differ, and name and value of those that they share.

    Empty in one and its default in the other is the same; ``title`` is the run's, its default.
    """
    seen: dict[str, ConfigField] = {}
    for body in (mine, theirs):
        seen |= {item.name: item for item in fields_for(task_named(body), tasks)}
    apart, same = [], []
    for item in seen.values():
        if item.name == "title":
            item = replace(item, default=title)
        one, other = text_at(mine, item), text_at(theirs, item)
        default = FieldRow(item, "").default
        if (one or default) != (other or default):
            apart.append({"field": item, "mine": one, "theirs": other})
        else:
            same.append((item.name, one))
    return apart, same


def changes_behind(
    run: Run, draft: ConfigDraft, newest: RunConfigVersion | None, mine: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what versions since the draft was begun changed, each with what the draft makes of it.

    ``mine`` is the config that publishing the draft would sign.
    """
    if newest is None or not draft_is_behind(draft, newest):
        return []
    base = run.configs.filter(version=draft.based_on).first()
    then = {c["path"]: c["new"] for c in config_diff(newest.body, mine)}
    return [
        change | {"mine": then.get(change["path"], change["new"]),
                  "is_taken_back": change["path"] in then}
        for change in config_diff(body_own(base.body) if base else {}, body_own(newest.body))
    ]  # fmt: skip


def _choices(
    item: ConfigField, value: str, tasks: Mapping[str, TaskInfo]
) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    if item.name == "task.name":
        pairs = [(t.name, f"{t.name}: {t.summary}" if t.summary else t.name)
                 for t in tasks.values()]  # fmt: skip
    elif item.kind == "boolean":
        pairs = [("true", "yes"), ("false", "no")]
    elif item.kind == "choice":
        pairs = [(choice, choice) for choice in item.choices]
    if pairs and value and value not in dict(pairs):
        pairs.append((value, f"{value} (not possible)"))
    return tuple(pairs)
