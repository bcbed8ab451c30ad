"""The demo is made once; what its organiser changed stays."""

import json
import stat
import sys
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from pytest_django import Settings

from training.protocol.config import RunConfig
from training.protocol.states import RunState
from web.accounts.models import User
from web.runs.models import Artifact, Run
from web.runs.selectors import config_current
from web.workers.demo import SLUG, demo_seed, organiser_ensure
from web.workers.models import ManagedWorker

TOKENIZER = f"""#!{sys.executable}
import pathlib, sys
assert sys.argv[1:5] == ["-m", "training", "tokenizer", "train"], sys.argv
pathlib.Path(sys.argv[sys.argv.index("--out") + 1]).write_text("a tokenizer")
with (pathlib.Path(__file__).parent / "calls").open("a") as calls:
    calls.write("x")
"""


@pytest.fixture(autouse=True)
def _folder(db: None, settings: Settings, tmp_path: Path) -> None:
    """A data folder, and a quick stand-in for the program that trains tokenizers."""
    program = tmp_path / "program"
    program.write_text(TOKENIZER)
    program.chmod(0o700)
    settings.TRAINING_PYTHON = str(program)
    settings.DATA_DIR = tmp_path
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


def test_the_organiser_is_made_once_and_only_this_account_may_read_the_password(
    tmp_path: Path,
) -> None:
    login = organiser_ensure()
    file = tmp_path / "organiser.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == login
    assert set(login) == {"username", "password"}
    assert organiser_ensure() == login
    user = authenticate(**login)
    assert isinstance(user, User)
    assert user.is_staff
    assert user.is_superuser


def test_a_lost_password_file_is_made_anew(tmp_path: Path) -> None:
    old = organiser_ensure()
    (tmp_path / "organiser.json").unlink()
    new = organiser_ensure()
    assert new["username"] == old["username"]
    assert authenticate(**new)
    assert authenticate(**old) is None


def test_the_demo_is_an_open_run_with_a_signed_config_and_three_managed_workers() -> None:
    run = demo_seed()
    assert run.slug == SLUG == "python-docs"
    run.refresh_from_db()
    assert run.state == RunState.OPEN
    config = RunConfig.model_validate(config_current(run).body)
    assert config.task.name == "albert"
    artifact = Artifact.objects.get()
    assert [a.sha256 for a in config.artifacts] == [artifact.sha256]
    wanted = list(run.managed_workers.values_list("kind", "name", "desired"))
    assert wanted == [
        ("coordinator", "coordinator", "running"),
        ("trainer", "trainer-1", "running"),
        ("trainer", "trainer-2", "running"),
    ]


def test_seeding_again_changes_nothing(tmp_path: Path) -> None:
    call_command("seed_demo", verbosity=0)
    run = Run.objects.get()
    run.title = "Renamed by its organiser"
    run.save()
    ManagedWorker.objects.filter(name="trainer-2").update(desired="stopped")
    call_command("seed_demo", verbosity=0)
    assert Run.objects.get().title == "Renamed by its organiser"
    assert run.configs.count() == 1
    assert ManagedWorker.objects.count() == 3
    assert ManagedWorker.objects.get(name="trainer-2").desired == "stopped"
    assert (tmp_path / "calls").read_text() == "x", "the tokenizer is trained once"


def test_a_failed_tokenizer_is_told_and_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no text was found')\n")
    with pytest.raises(RuntimeError, match="no text was found"):
        demo_seed()
    program.write_text(TOKENIZER)
    assert demo_seed().configs.count() == 1
