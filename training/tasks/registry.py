"""Tasks by name, as a run's config names them."""

from training.tasks.albert.task import AlbertTask
from training.tasks.task import Task, TaskError
from training.tasks.tiny import TinyTask

_TASKS: dict[str, Task] = {task.name: task for task in (AlbertTask(), TinyTask())}


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
