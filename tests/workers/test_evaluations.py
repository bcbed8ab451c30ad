"""Checkpoints are measured one at a time by a process of the lowest rank; results outlive files."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from tests.factories_runs import draft_make, run_make, swarm_make
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Checkpoint, Run
from web.runs.signals import run_changed
from web.workers.evaluation_outcome import MAX_EXAMPLES, outcome_read
from web.workers.evaluation_process import evaluation_folder, evaluation_mark
from web.workers.evaluation_selectors import example_parts
from web.workers.evaluations import (
    LIMIT,
    evaluation_automatic,
    evaluation_request,
    evaluations_look,
    evaluations_stop,
)
from web.workers.launcher import children_reap
from web.workers.models import EvaluationJob
from web.workers.processes import is_alive, marked_processes, processes_kill, wait_until

RESULT = {
    "metrics": {"mlm_loss": 2.5, "mlm_accuracy": 0.25},
    "num_samples": 64,
    "examples": [
        {"text": "the ____ sat", "guesses": [{"hidden": "cat", "guess": "<b>dog</b>"}]},
        {"text": "a ____", "guesses": [{"hidden": "mat", "guess": "mat"}]},
    ],
}
GOOD = f"""
print({json.dumps(json.dumps(RESULT))})
"""
SLOW = """
time.sleep(60)
"""
REFUSING = """
print(json.dumps({"error": {"detail": "no text is held out", "remedy": "Hold some out."}}))
sys.exit(2)
"""
CRASHING = """
sys.exit("torch is not installed")
"""
Write = Callable[[str], None]


@pytest.fixture
def program(tmp_path: Path, settings: Settings) -> Any:
    settings.DATA_DIR = tmp_path
    settings.CHECKPOINTS_DIR = tmp_path / "checkpoints"
    settings.WORKERS_DIR = tmp_path / "workers"
    script = tmp_path / "program"
    settings.TRAINING_PYTHON = str(script)
    head = f"#!{sys.executable}\nimport json, os, pathlib, sys, time\n"
    tell = 'pathlib.Path("told").write_text(json.dumps([sys.argv, os.nice(0), dict(os.environ)]))\n'

    def write(behaviour: str) -> None:
        script.write_text(head + tell + textwrap.dedent(behaviour))
        script.chmod(0o700)

    write(GOOD)
    yield write
    processes_kill(marked_processes())
    assert wait_until(lambda: children_reap() or not marked_processes(), 5)


@pytest.fixture
def run(alice: User, program: Write) -> Run:
    return run_make(alice, draft=draft_make(evaluation={"automatic": True, "samples": 64}))


def checkpoint_make(run: Run, epoch: int, settings: Settings) -> Checkpoint:
    (Path(settings.CHECKPOINTS_DIR) / run.slug / f"1-{epoch:08d}").mkdir(parents=True)
    file = {"name": "model.safetensors", "size": 5_000_000, "sha256": "ab" * 32}
    return Checkpoint.objects.create(
        run=run, lineage=1, epoch=epoch, config_version=1, files=[file], manifest="",
        saved_at=timezone.now(),
    )  # fmt: skip


def look_until_over(job: EvaluationJob) -> EvaluationJob:
    def is_over() -> bool:
        evaluations_look(timezone.now())
        children_reap()
        job.refresh_from_db()
        return job.state in (job.State.DONE, job.State.FAILED)

    assert wait_until(is_over, 20), job.state
    return job


def test_a_new_checkpoint_is_evaluated_when_the_run_says_so(run: Run, settings: Settings) -> None:
    checkpoint_make(run, 5, settings)
    run_changed.send(Run, run=run, kind="checkpoint.saved", text="saved")
    job = look_until_over(EvaluationJob.objects.get())
    assert job.state == "done", job.reason
    assert {r.metric: r.value for r in job.results.all()} == RESULT["metrics"]
    assert (job.asked_by, job.num_samples, job.examples) == (None, 64, RESULT["examples"])
    assert job.seconds is not None
    assert not evaluation_folder(job).exists()
    assert "mlm_loss 2.5" in run.events.get(kind="evaluation.finished").text


def test_a_run_that_does_not_say_so_is_evaluated_only_by_hand(
    alice: User, program: Write, settings: Settings
) -> None:
    run = run_make(alice)
    checkpoint = checkpoint_make(run, 5, settings)
    evaluation_automatic(run)
    assert not EvaluationJob.objects.exists()
    job = look_until_over(evaluation_request(alice, checkpoint))
    assert (job.state, job.asked_by) == ("done", alice)
    entry = AuditEntry.objects.get(code="evaluation.requested")
    assert (entry.actor_name, entry.data) == ("alice", {"epoch": 5})


def test_the_process_has_no_secret_no_gpu_and_the_lowest_rank(
    run: Run, alice: User, settings: Settings, program: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "secret-database")
    program(SLOW)
    job = evaluation_request(alice, checkpoint_make(run, 5, settings))
    evaluations_look(timezone.now())
    told_path = evaluation_folder(job) / "told"
    assert wait_until(lambda: told_path.exists() and bool(told_path.read_text()), 10)
    argv, rank, environment = json.loads(told_path.read_text())
    assert argv[1:5] == ["-m", "training", "evaluate", "--json"]
    assert argv[argv.index("--checkpoint") + 1].endswith("/1-5/1-00000005")
    config = json.loads(Path(argv[argv.index("--config") + 1]).read_text())
    assert config["evaluation"] == {"automatic": True, "samples": 64}
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert "secret-database" not in json.dumps(environment)
    assert rank in (0, 19)  # it may have looked before its rank was lowered
    (process,) = marked_processes(evaluation_mark(job))
    assert process.nice() == 19


def test_one_runs_at_a_time_and_what_people_ask_for_comes_first(
    run: Run, alice: User, settings: Settings, program: Write
) -> None:
    program(SLOW)
    first, second, third = (checkpoint_make(run, epoch, settings) for epoch in (1, 2, 3))
    evaluation_request(None, first)
    evaluations_look(timezone.now())
    evaluation_request(None, second)
    evaluation_request(alice, third)
    evaluations_look(timezone.now())
    assert list(EvaluationJob.objects.filter(state="running").values_list("epoch", flat=True)) == [
        1
    ]
    evaluations_look(timezone.now() + LIMIT + timedelta(seconds=1))
    failed = EvaluationJob.objects.get(epoch=1)
    assert (failed.state, failed.reason) == ("failed", "It took more than 30 minutes.")
    assert EvaluationJob.objects.get(state="running").epoch == 3


def test_what_still_waits_is_skipped_for_a_newer_checkpoint(run: Run, settings: Settings) -> None:
    for epoch in (1, 2, 3):
        checkpoint_make(run, epoch, settings)
        evaluation_automatic(run)
    states = dict(EvaluationJob.objects.values_list("epoch", "state"))
    assert states == {1: "skipped", 2: "skipped", 3: "waiting"}


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (REFUSING, "No text is held out. Hold some out."),
        (CRASHING, "It ended without a result. torch is not installed"),
        ('print(\'{"metrics": {"loss": NaN}}\')', "not finite"),
    ],
)
def test_a_failure_says_why(
    run: Run, alice: User, settings: Settings, program: Write, behaviour: str, reason: str
) -> None:
    program(behaviour)
    checkpoint = checkpoint_make(run, 5, settings)
    job = look_until_over(evaluation_request(alice, checkpoint))
    assert job.state == "failed"
    assert reason in job.reason
    program(GOOD)
    assert look_until_over(evaluation_request(alice, checkpoint)).state == "done"


def test_a_checkpoint_that_is_gone_and_one_in_work_are_told(
    run: Run, alice: User, settings: Settings, program: Write
) -> None:
    checkpoint = checkpoint_make(run, 5, settings)
    (Path(settings.CHECKPOINTS_DIR) / "demo" / "1-00000005").rmdir()
    job = look_until_over(evaluation_request(alice, checkpoint))
    assert "no longer kept" in job.reason
    EvaluationJob.objects.update(state="running")
    with pytest.raises(AppError, match="right now"):
        evaluation_request(alice, checkpoint)


def test_what_the_config_asked_for_is_skipped_when_its_files_were_dropped_meanwhile(
    run: Run, settings: Settings
) -> None:
    checkpoint_make(run, 5, settings)
    evaluation_automatic(run)
    (Path(settings.CHECKPOINTS_DIR) / "demo" / "1-00000005").rmdir()
    evaluations_look(timezone.now())
    job = EvaluationJob.objects.get()
    assert (job.state, job.reason) == ("skipped", "A newer checkpoint came first.")
    assert not evaluation_folder(job).exists()


def test_a_checkpoint_that_is_dropped_while_it_is_evaluated_is_read_to_the_end(
    run: Run, alice: User, settings: Settings, program: Write
) -> None:
    checkpoint = checkpoint_make(run, 5, settings)
    kept = Path(settings.CHECKPOINTS_DIR) / "demo" / "1-00000005"
    (kept / "model.safetensors").write_text("weights")
    wait = """
    while not pathlib.Path("dropped").exists():
        time.sleep(0.05)
    folder = pathlib.Path(sys.argv[sys.argv.index("--checkpoint") + 1])
    assert (folder / "model.safetensors").exists()
    """
    program(textwrap.dedent(wait) + GOOD)
    job = evaluation_request(alice, checkpoint)
    evaluations_look(timezone.now())
    shutil.rmtree(kept)
    (evaluation_folder(job) / "dropped").touch()
    assert look_until_over(job).state == "done", job.reason


def test_the_stop_of_the_site_puts_an_evaluation_back(
    run: Run, alice: User, settings: Settings, program: Write
) -> None:
    program(SLOW)
    job = evaluation_request(alice, checkpoint_make(run, 5, settings))
    evaluations_look(timezone.now())
    job.refresh_from_db()
    pid, started_at = job.pid, job.process_started_at
    assert is_alive(pid, started_at)
    evaluations_stop()
    job.refresh_from_db()
    assert (job.state, job.pid) == ("waiting", None)
    assert not marked_processes(evaluation_mark(job))


def test_another_nodes_evaluation_is_left_alone(run: Run, alice: User, settings: Settings) -> None:
    job = evaluation_request(alice, checkpoint_make(run, 5, settings))
    settings.NODE = "annex"
    evaluations_look(timezone.now())
    job.refresh_from_db()
    assert (job.state, job.node) == ("waiting", "site")


def done(run: Run, epoch: int) -> EvaluationJob:
    now = timezone.now()
    job = EvaluationJob.objects.create(
        run=run, lineage=1, epoch=epoch, config_version=1, state="done", asked_at=now, node="site",
        finished_at=now, seconds=3.0, num_samples=64, examples=RESULT["examples"],
    )  # fmt: skip
    for metric, value in RESULT["metrics"].items():
        job.results.create(metric=metric, value=value)
    return job


def test_people_and_programs_read_what_the_model_can_do(run: Run, client: Client) -> None:
    for epoch in (5, 10):
        done(run, epoch)
    assert 'hx-get="/runs/demo/evaluations/"' in client.get("/runs/demo/").text
    page = client.get("/runs/demo/evaluations/").text
    part = client.get("/runs/demo/evaluations/", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert part.strip() in page
    assert "Masked-word loss" in page
    assert "25.0 %" in page
    assert "Its guesses at epoch 10" in page
    assert "&lt;b&gt;dog" in page
    assert "it was cat" in page
    answer = client.get("/api/v1/runs/demo/evaluations/?limit=1").json()
    assert answer["items"][0]["epoch"] == 10
    assert answer["items"][0]["metrics"] == RESULT["metrics"]
    assert answer["next"]


def test_reading_costs_as_many_queries_for_many_as_for_one(
    run: Run, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for epoch in range(20):
        done(run, epoch)
    with django_assert_max_num_queries(4):
        assert client.get("/api/v1/runs/demo/evaluations/").status_code == 200
    with django_assert_max_num_queries(7):
        assert client.get("/runs/demo/evaluations/").status_code == 200


def test_the_checkpoints_page_evaluates_and_leads_back(
    run: Run,
    alice: User,
    client: Client,
    settings: Settings,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    client.force_login(alice)
    swarm_make(run)  # somebody whose work can be undone
    for epoch in range(1, 9):
        checkpoint_make(run, epoch, settings)
    done(run, 7)
    EvaluationJob.objects.create(
        run=run, lineage=1, epoch=6, config_version=1, state="failed", asked_at=timezone.now(),
        node="site", reason="The file is damaged.",
    )  # fmt: skip
    with django_assert_max_num_queries(18):
        page = client.get("/control/runs/demo/checkpoints/").text
    assert "abababababab…" in page
    assert "Masked-word loss 2.500" in page
    assert "The file is damaged." in page
    assert 'href="/control/runs/demo/checkpoints/1/7/roll-back/"' in page
    assert 'value="7"' in client.get("/control/runs/demo/undo/?from_epoch=7").text
    answer = client.post("/control/runs/demo/checkpoints/1/3/evaluate/", follow=True)
    assert "Epoch 3 is evaluated on node site" in answer.text
    assert EvaluationJob.objects.get(epoch=3).asked_by == alice
    assert client.post("/control/runs/demo/checkpoints/1/99/evaluate/").status_code == 404


def test_guesses_stand_in_the_gaps() -> None:
    parts = example_parts(RESULT["examples"][0])  # type: ignore[index]
    assert [(p.text, p.guess, p.is_right) for p in parts] == [
        ("the ", "", True),
        ("", "<b>dog</b>", False),
        (" sat", "", True),
    ]
    bare = example_parts({"text": "sample 1", "guesses": [{"hidden": "a", "guess": "a"}]})
    assert [part.guess for part in bare] == ["", "a"]


words = st.text(max_size=80)
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(words, inner, max_size=6),
    max_leaves=20,
)
bodies = st.fixed_dictionaries(
    {}, optional={"metrics": values, "examples": values, "num_samples": values, "error": values}
)


@given(bodies, words)
def test_whatever_a_process_says_becomes_bounded_figures_or_a_reason(
    body: dict[str, Any], errors: str
) -> None:
    outcome = outcome_read(json.dumps(body), errors)
    assert bool(outcome.metrics) != bool(outcome.reason)
    assert len(outcome.reason) <= 500
    assert len(outcome.examples) <= MAX_EXAMPLES
    for example in outcome.examples:
        example_parts(example)
