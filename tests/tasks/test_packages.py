"""Tasks of installed packages are found by their entry points."""

from pathlib import Path

import pytest

from training.tasks.registry import task_get, tasks_list
from training.tasks.task import TaskError
from training.tasks.tiny import TinyTask

CODE = """
from training.tasks.tiny import TinyTask

class Mine(TinyTask):
    name = "mine"

class Odd(TinyTask):
    name = "even"

made = Mine()
made_as_albert = Mine()
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as an installer leaves it behind."""
    (tmp_path / "package_of_somebody.py").write_text(CODE)
    info = tmp_path / "package_of_somebody-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: package-of-somebody\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[beeyard.tasks]\n"
        "mine = package_of_somebody:Mine\n"
        "albert = package_of_somebody:made_as_albert\n"
        "odd = package_of_somebody:Odd\n"
        "broken = package_of_nobody:Task\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_task_of_an_installed_package_is_found_by_its_name() -> None:
    task = task_get("mine")
    assert isinstance(task, TinyTask)
    assert task.name == "mine"
    assert [task.name for task in tasks_list()] == ["albert", "mine", "tiny"]


def test_no_package_takes_the_place_of_a_built_in_task() -> None:
    assert type(task_get("albert")).__name__ == "AlbertTask"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken", "of package-of-somebody cannot be loaded: No module named"),
        ("odd", "calls its task 'even'"),
        ("unheard-of", "has no task 'unheard-of'"),
    ],
)
def test_a_task_that_cannot_be_used_says_why(name: str, text: str) -> None:
    with pytest.raises(TaskError, match=text) as error:
        task_get(name)
    assert error.value.remedy.endswith(".")
