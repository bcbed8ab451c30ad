"""The demo: an organiser, the run ``python-docs``, its coordinator and two trainers."""

import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from web.accounts.models import User
from web.accounts.services import user_register
from web.core.secretfiles import secret_file_write
from web.runs.models import Artifact, Run
from web.runs.services import artifact_store, run_config_publish, run_create, run_transition
from web.workers.models import ManagedWorker
from web.workers.services import managed_worker_create

SLUG = "python-docs"
TOKENIZER = "tokenizer.json"
VOCAB_SIZE = 8192
NUM_TRAINERS = 2
_SUMMARY = (
    "A small ALBERT learns to read the documentation that comes with every Python, "
    "on the processors of whoever joins."
)
_DESCRIPTION = (
    "Masked words and swapped sentences, as in the ALBERT paper, on the docstrings of the "
    "standard library and the language reference. Nothing is downloaded: the text is on your "
    "machine already."
)


def organiser_ensure() -> dict[str, str]:
    """Return the organiser's name and password, made once and kept in a file of mode 0600."""
    path = Path(settings.DATA_DIR) / "organiser.json"
    if path.exists():
        kept: dict[str, str] = json.loads(path.read_text())
        if User.objects.filter(username=kept["username"]).exists():
            return kept
    login = {"username": "organiser", "password": secrets.token_urlsafe(12)}
    with transaction.atomic():
        user = User.objects.filter(username=login["username"]).first()
        if user is None:
            user = user_register(**login, is_staff=True)
        user.is_superuser = True
        user.set_password(login["password"])
        user.save()
    secret_file_write(path, json.dumps(login) + "\n")
    return login


def demo_seed(tell: Callable[[str], None] = lambda text: None) -> Run:
    """Make what is missing of the demo; what is there stays as its organiser left it."""
    organiser = User.objects.get(username=organiser_ensure()["username"])
    run = Run.objects.filter(slug=SLUG).first()
    if run is None:
        run = run_create(
            organiser,
            slug=SLUG,
            title="Python's documentation",
            summary=_SUMMARY,
            description=_DESCRIPTION,
        )
    if not run.configs.exists():
        tell("Training the demo's tokenizer on Python's documentation (once).")
        artifact = tokenizer_make()
        with transaction.atomic():
            run_config_publish(organiser, run, draft(artifact))
            run_transition(organiser, run, "open")
    for kind, name in _workers():
        if not ManagedWorker.objects.filter(run=run, name=name).exists():
            managed_worker_create(organiser, run, kind, name)
    return run


def _workers() -> list[tuple[str, str]]:
    trainers = [("trainer", f"trainer-{number + 1}") for number in range(NUM_TRAINERS)]
    return [("coordinator", "coordinator"), *trainers]


def tokenizer_make() -> Artifact:
    """Train the tokenizer in a process of its own (the site has no torch) and keep it by hash.

    Raises:
        RuntimeError: with the last words of the command that failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / TOKENIZER
        command = [
            settings.TRAINING_PYTHON or sys.executable,
            *("-m", "training", "tokenizer", "train", "--source", "python-docs"),
            *("--vocab", str(VOCAB_SIZE), "--out", str(out)),
        ]
        result = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
        )
        if result.returncode or not out.exists():
            raise RuntimeError(f"the tokenizer was not made: {result.stderr[-500:]}")
        return artifact_store(out, TOKENIZER)


def draft(tokenizer: Artifact) -> dict[str, Any]:
    """Return the demo's config: an epoch every 15 to 30 s with two trainers of one thread each."""
    artifact = {"name": tokenizer.name, "sha256": tokenizer.sha256, "size": tokenizer.size}
    return {
        "title": "Python's documentation",
        "seed": 7,
        "artifacts": [artifact],
        "task": {
            "name": "albert",
            "params": {
                "hidden_size": 128,
                "embedding_size": 128,
                "layers": 4,
                "heads": 4,
                "intermediate_size": 512,
                "vocab_size": VOCAB_SIZE,
                "sequence_length": 64,
            },
        },
        "optimizer": {
            "learning_rate": 0.015,
            "warmup_epochs": 5,
            "total_epochs": 5000,
            "min_learning_rate_ratio": 0.1,
        },
        "swarm": {
            "target_batch_size": 4096,
            "matchmaking_seconds": 3.0,
            "request_timeout_seconds": 1.5,
            "averaging_timeout_seconds": 20.0,
            "average_state_every": 5,
        },
        "checkpoint": {"every_epochs": 5, "keep": 3},
        "evaluation": {"automatic": True, "samples": 256},
    }
