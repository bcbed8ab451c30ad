"""Tasks by name, as a run's config names them: built in, or of packages that are installed here.

A package offers a task by an entry point of the group ``beeyard.tasks``: its name is the task's,
its object a :class:`~training.tasks.task.Task` or a class that makes one without arguments. Only
what somebody has installed on this machine is ever loaded, and only when a config names it.
"""

import importlib.metadata
from collections.abc import Callable
from functools import cache

from training.tasks.evaluation import Evaluate
from training.tasks.task import Task, TaskError
from training.tasks.tiny import TinyTask, tiny_evaluate

GROUP = "beeyard.tasks"


# A task's libraries take seconds to import: only those of the run's own task are loaded.
@cache
def _albert() -> Task:
    from training.tasks.albert.task import AlbertTask

    return AlbertTask()


@cache
def _tiny() -> Task:
    return TinyTask()


def _albert_evaluation() -> Evaluate:
    from training.tasks.albert.evaluation import albert_evaluate

    return albert_evaluate


_TASKS: dict[str, Callable[[], Task]] = {"albert": _albert, "tiny": _tiny}
_EVALUATIONS: dict[str, Callable[[], Evaluate]] = {
    "albert": _albert_evaluation,
    "tiny": lambda: tiny_evaluate,
}


def task_get(name: str) -> Task:
    """Return the task of this name; a built-in one before one of a package.

    Raises:
        TaskError: this trainer has no such task, or its package is broken.
    """
    if name in _TASKS:
        return _TASKS[name]()
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name == name:
            return _load(entry)
    raise TaskError(
        f"this trainer has no task {name!r}",
        "Install the version, or the package, that the run's page offers.",
    )


def tasks_list() -> list[Task]:
    """Return all tasks, by name; packages that are broken are left out."""
    found = {name: load() for name, load in _TASKS.items()}
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            found.setdefault(entry.name, _load(entry))
        except TaskError:
            continue
    return [found[name] for name in sorted(found)]


def _load(entry: importlib.metadata.EntryPoint) -> Task:
    package = entry.dist.name if entry.dist else "a package"
    try:
        made = entry.load()
        task: Task = made() if isinstance(made, type) else made
        name = task.name
    except Exception as error:  # whatever code of others raises
        raise TaskError(
            f"the task {entry.name!r} of {package} cannot be loaded: {error}",
            f"Install {package} again, or ask its authors.",
        ) from error
    if name != entry.name:
        raise TaskError(
            f"{package} calls its task {name!r} and offers it as {entry.name!r}",
            "Ask its authors to mend it.",
        )
    return task


def evaluation_get(name: str) -> Evaluate:
    """Return the evaluation of a task.

    Raises:
        TaskError: this trainer has none for it.
    """
    try:
        return _EVALUATIONS[name]()
    except KeyError:
        raise TaskError(
            f"the task {name!r} has no evaluation", "Evaluate runs of another task."
        ) from None
