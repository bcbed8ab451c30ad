"""How a run is presented can be changed after it was made."""

from typing import Any

import pytest
from django.test import Client

from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.runs.models import Run
from web.runs.services import run_describe, texts

TEXTS: dict[str, Any] = {
    "title": "Bees write",
    "summary": "A small language model.",
    "description": "Trained <b>openly</b>.\n\nSee https://example.org/plan for more.",
    "is_public": True,
}


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def test_an_organiser_changes_title_texts_and_visibility(
    client: Client, alice: User, run: Run
) -> None:
    client.force_login(alice)
    asked = client.get("/control/runs/demo/texts/")
    assert asked.status_code == 200
    assert "The demo run" in asked.text
    answer = client.post("/control/runs/demo/texts/", TEXTS, follow=True)
    assert "Saved." in answer.text
    run.refresh_from_db()
    assert (run.title, run.summary, run.is_public) == ("Bees write", TEXTS["summary"], True)
    page = client.get("/runs/demo/").text
    assert "Trained &lt;b&gt;openly&lt;/b&gt;." in page, "plain text, never markup"
    assert '<a href="https://example.org/plan" rel="nofollow">' in page


def test_a_change_stands_in_the_events_and_in_the_audit_log(alice: User, run: Run) -> None:
    assert run_describe(alice, run, **TEXTS)
    event = RunEvent.objects.get(kind="run.described")
    assert event.text == "alice changed the run's title, summary and description"
    entry = AuditEntry.objects.get(code="run.described")
    assert entry.data["before"]["title"] == "The demo run"
    assert entry.data["after"]["title"] == "Bees write"
    assert "is_public" not in entry.data["after"], "it did not change"
    assert not run_describe(alice, run, **TEXTS), "the same again is no change"
    assert RunEvent.objects.filter(kind="run.described").count() == 1


def test_a_run_made_private_is_gone_for_outsiders(
    client: Client, alice: User, charlie: User, run: Run
) -> None:
    client.force_login(charlie)
    assert client.get("/runs/demo/").status_code == 200
    run_describe(alice, run, **{**TEXTS, "is_public": False})
    assert client.get("/runs/demo/").status_code == 404
    client.force_login(alice)
    assert client.get("/runs/demo/").status_code == 200


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"title": " "}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"summary": "x" * 301}, "summary"),
        ({"description": "x" * 5_001}, "description"),
    ],
)
def test_texts_that_do_not_fit_change_nothing(
    client: Client, alice: User, run: Run, wrong: dict[str, str], field: str
) -> None:
    with pytest.raises(AppError) as error:
        run_describe(alice, run, **{**TEXTS, **wrong})
    assert error.value.code == ErrorCode.BODY_INVALID
    assert error.value.detail.startswith(f"{field}: ")
    client.force_login(alice)
    page = client.post("/control/runs/demo/texts/", {**TEXTS, **wrong})
    assert page.status_code == 200
    assert f'id="id_{field}_error"' in page.text
    run.refresh_from_db()
    assert run.title == "The demo run"


def test_others_change_nothing(bob: User, run: Run) -> None:
    with pytest.raises(AppError) as error:
        run_describe(bob, run, **TEXTS)
    assert error.value.code == ErrorCode.FORBIDDEN


def test_whoever_watches_a_run_that_becomes_private_is_looked_at_at_once(
    alice: User,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(texts, "access_changed_publish", lambda: looks.append("look"))
    with django_capture_on_commit_callbacks(execute=True):
        run_describe(alice, run, **TEXTS)
    assert looks == []
    with django_capture_on_commit_callbacks(execute=True):
        run_describe(alice, run, **{**TEXTS, "is_public": False})
    assert looks == ["look"]
