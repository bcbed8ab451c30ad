"""Rules about what is trained: task, files, learning rate, schedule. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from training.protocol.config import RunConfig
from training.protocol.names import TRAINER_VERSION
from training.protocol.versions import is_version_at_least
from web.runs.findings import Finding, Severity, Situation

_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")
JUMP = 3.0
"""A learning rate that changes by more than this factor is worth a question."""


def _task(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    if config.task.name not in situation.tasks:
        yield Finding(
            "task_not_allowed",
            Severity.ERROR,
            f"This site does not allow the task {config.task.name[:60]}.",
            "Choose another task, or ask an admin to allow it.",
            "task.name",
        )


def _albert(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    if config.task.name != "albert":
        return
    params = config.task.params
    names = {artifact.name for artifact in config.artifacts}
    hidden, heads = params.get("hidden_size", 768), params.get("heads", 12)
    layers, groups = params.get("layers", 12), params.get("groups", 1)
    files = params.get("files") or []
    wanted = [str(params.get("tokenizer", "tokenizer.json"))]
    wanted += [str(name) for name in files] if isinstance(files, list) else []
    for name in wanted:
        if name not in names:
            yield _error(
                "file_missing",
                f"The task needs the file {name[:80]}, and the draft has none of that name.",
                _remedy(name, params),
                "artifacts",
            )
    if _remainder(hidden, heads):
        yield _error(
            "params_do_not_fit",
            "The hidden size is no multiple of the heads.",
            "Trainers refuse this model: change one of the two.",
            "task.params.hidden_size",
        )
    if _remainder(layers, groups):
        yield _error(
            "params_do_not_fit",
            "The number of layers is no multiple of the groups.",
            "Trainers refuse this model: change one of the two.",
            "task.params.groups",
        )
    if (params.get("source", "python-docs") == "text-files") != bool(files):
        yield _error(
            "params_do_not_fit",
            "Files belong to the source text-files, and it needs at least one.",
            "Choose the source text-files and name its files, or neither.",
            "task.params.files",
        )


def _remedy(name: str, params: Mapping[str, Any]) -> str:
    if name == params.get("tokenizer", "tokenizer.json"):
        return "Make one with `beeyard tokenizer train`, then store it below Files."
    return "Tick it below Files, or store it there."


def _trainer_version(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    wanted = config.min_trainer_version.strip().removeprefix("v")
    if not _VERSION.fullmatch(wanted):
        yield _error(
            "trainer_version_unreadable",
            f"“{wanted[:40]}” is no version: every trainer would be let in.",
            f"Write numbers with dots, such as {TRAINER_VERSION}.",
            "min_trainer_version",
        )
    elif not is_version_at_least(TRAINER_VERSION, wanted):
        yield _error(
            "trainer_version_unknown",
            f"Trainers of version {wanted[:40]} do not exist yet: nobody could join.",
            f"This site hands out {TRAINER_VERSION}; ask for that or an older one.",
            "min_trainer_version",
        )


def _learning_rate(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    now, previous = config.optimizer.learning_rate, situation.previous
    if previous is not None and previous.optimizer.name == config.optimizer.name:
        old = previous.optimizer.learning_rate
        factor = max(now / old, old / now)
        if factor > JUMP:
            word = "grows" if now > old else "falls"
            yield Finding(
                "learning_rate_jump",
                Severity.WARNING,
                f"The learning rate {word} {factor:.3g}-fold, from {old:g} to {now:g}.",
                f"Steps of less than {JUMP:g}-fold are easier to judge.",
                "optimizer.learning_rate",
            )
    if config.optimizer.name == "lamb" and now > 0.1:
        yield Finding(
            "learning_rate_high",
            Severity.WARNING,
            f"A learning rate of {now:g} is far above what LAMB is used with.",
            "Take 0.0005 to 0.02.",
            "optimizer.learning_rate",
        )


def _schedule(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    optimizer, end = config.optimizer, config.max_epochs
    if optimizer.warmup_epochs >= optimizer.total_epochs:
        yield _error(
            "warmup_too_long",
            f"The warm-up of {optimizer.warmup_epochs:,} epochs never ends: the schedule has "
            f"{optimizer.total_epochs:,}.",
            "Make it 1 to 5 % of all epochs.",
            "optimizer.warmup_epochs",
        )
    last = end or situation.epoch
    if last > optimizer.total_epochs and not optimizer.min_learning_rate_ratio:
        yield Finding(
            "learning_rate_ends",
            Severity.WARNING,
            f"The learning rate is zero from epoch {optimizer.total_epochs:,} on, and the run "
            f"goes to epoch {last:,}.",
            "Raise the number of all epochs, or set a floor of 0.1.",
            "optimizer.total_epochs",
        )
    is_same = situation.previous is not None and situation.previous.lineage == config.lineage
    if end is not None and is_same and end <= situation.epoch:
        yield _error(
            "already_past",
            f"The run would finish at once: it is in epoch {situation.epoch:,}, the last one is "
            f"{end:,}.",
            "Raise the last epoch, or finish the run at the desk.",
            "max_epochs",
        )


def _remainder(number: object, divisor: object) -> bool:
    if not isinstance(number, int) or not isinstance(divisor, int):
        return False  # said beside the field already
    return divisor > 0 and number % divisor != 0


def _error(code: str, sentence: str, remedy: str, path: str) -> Finding:
    return Finding(code, Severity.ERROR, sentence, remedy, path)


TRAINING_RULES: Final = (_task, _trainer_version, _albert, _learning_rate, _schedule)
