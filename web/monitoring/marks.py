"""Marks on a run's line of time: config changes, roll-backs, incidents, checkpoints."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import OuterRef, QuerySet, Subquery

from web.monitoring.models import EpochRecord
from web.runs.models import Run

MAX_MARKS = 200
"""Of each kind, the newest: a line of time with more is read by nobody."""
CONDITION_TEXTS: Final = {
    "running": "runs",
    "waiting_for_peers": "waits for peers",
    "stalled": "stalled",
    "unknown": "unknown",
    "paused": "paused",
    "finished": "finished",
    "draft": "draft",
}
_INCIDENTS: Final = ("stalled", "unknown", "waiting_for_peers")


@dataclass(frozen=True)
class Mark:
    """One mark."""

    at: datetime
    kind: str
    """``config``, ``rollback``, ``incident``, ``state`` or ``checkpoint``."""
    text: str
    lineage: int | None
    epoch: int | None
    """The newest that had finished then; of a checkpoint, its own. None: none had."""


def run_marks(run: Run, start: datetime | None = None, end: datetime | None = None) -> list[Mark]:
    """Return the marks from ``start`` to ``end``, oldest first, in three queries."""
    configs = _within(run.configs.all(), run, "published_at", start, end)
    turns = _within(run.turns.all(), run, "at", start, end)
    saved = _within(run.checkpoints.all(), run, "saved_at", start, end)
    marks = [
        *_config_marks(configs),
        *(_turn_mark(turn) for turn in turns),
        *(Mark(c.saved_at, "checkpoint", f"checkpoint of epoch {c.epoch}", c.lineage, c.epoch)
          for c in saved),
    ]  # fmt: skip
    return sorted(marks, key=lambda mark: mark.at)


def _within(
    rows: "QuerySet[Any]", run: Run, field: str, start: datetime | None, end: datetime | None
) -> "QuerySet[Any]":
    if start is not None:
        rows = rows.filter(**{f"{field}__gte": start})
    if end is not None:
        rows = rows.filter(**{f"{field}__lte": end})
    ended = EpochRecord.objects.filter(run=run, finished_at__lte=OuterRef(field))
    ended = ended.order_by("-finished_at")
    return rows.annotate(
        mark_epoch=Subquery(ended.values("epoch")[:1]),
        mark_lineage=Subquery(ended.values("lineage")[:1]),
    ).order_by(f"-{field}")[:MAX_MARKS]


def _config_marks(configs: Iterable[Any]) -> Iterable[Mark]:
    """Yield the marks of configs; those after a roll-back keep saying where the lineage began."""
    before: Any = None
    for config in sorted(configs, key=lambda config: int(config.version)):
        began = config.body.get("start")
        is_rollback = began is not None and began != before
        before = began
        text = f"config version {config.version}"
        if is_rollback:
            text = f"rolled back to epoch {began['epoch']} (config version {config.version})"
        kind = "rollback" if is_rollback else "config"
        yield Mark(config.published_at, kind, text, config.mark_lineage, config.mark_epoch)


def _turn_mark(turn: Any) -> Mark:
    kind = "incident" if turn.condition in _INCIDENTS else "state"
    text = turn.reason or CONDITION_TEXTS.get(turn.condition, turn.condition)
    if turn.condition == "running":
        text = "training goes on"
    return Mark(turn.at, kind, text, turn.mark_lineage, turn.mark_epoch)
