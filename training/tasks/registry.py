"""Tasks by name, as a run's config names them."""

from training.tasks.albert.evaluation import albert_evaluate
from training.tasks.albert.task import AlbertTask
from training.tasks.evaluation import Evaluate
from training.tasks.task import Task, TaskError
from training.tasks.tiny import TinyTask, tiny_evaluate

_TASKS: dict[str, Task] = {task.name: task for task in (AlbertTask(), TinyTask())}

_EVALUATIONS: dict[str, Evaluate] = {"albert": albert_evaluate, "tiny": tiny_evaluate}


def task_get(name: str) -> Task:
    """Return the task of this name.

    Raises:
        TaskError: this trainer has no such task.
    """
    try:
        return _TASKS[name]
    except KeyError:
        raise TaskError(
            f"this trainer has no task {name!r}", "Install the version the run's page offers."
        ) from None


def tasks_list() -> list[Task]:
    """Return all tasks, by name."""
    return [_TASKS[name] for name in sorted(_TASKS)]


def evaluation_get(name: str) -> Evaluate:
    """Return the evaluation of a task.

    Raises:
        TaskError: this trainer has none for it.
    """
    try:
        return _EVALUATIONS[name]
    except KeyError:
        raise TaskError(
            f"the task {name!r} has no evaluation", "Evaluate runs of another task."
        ) from None
