"""A draft that was begun before a version was published takes nothing back unknowingly."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.control.test_configs import DRAFT, FORM, page_of, run
from tests.factories_runs import config_publish, draft_make, run_make
from web.accounts.models import User
from web.control.draftview import differences
from web.core.models import AuditEntry
from web.runs.catalogue import tasks_allowed
from web.runs.draft_body import artifacts_of, body_own
from web.runs.findings import Finding, Severity
from web.runs.models import Artifact, ConfigDraft, Run, RunMember
from web.runs.selectors import artifacts_stored
from web.runs.services import (
    DraftConflict,
    draft_discard,
    draft_file_add,
    draft_import,
    draft_publish,
    draft_save,
    run_member_add,
)

__all__ = ["run"]


def test_a_form_opened_before_a_version_shows_what_it_changed(desk: Client, run: Run) -> None:
    assert 'name="based_on" value="1"' in desk.get(DRAFT).text
    config_publish(run, seed=77)
    answer = desk.post(DRAFT, FORM | {"seed": "5", "revision": "0", "based_on": "1"})
    assert answer.status_code == 409
    assert "Version 2 was published meanwhile" in answer.text
    assert 'name="seed" value="77"' in answer.text
    assert 'name="based_on" value="2"' in answer.text
    assert not ConfigDraft.objects.exists()
    desk.post(DRAFT, FORM | {"seed": "5", "revision": "0", "based_on": "2"})
    draft = ConfigDraft.objects.get()
    assert (draft.body["seed"], draft.based_on) == (5, 2)


def test_a_saved_draft_that_is_behind_is_kept_knowingly(alice: User, run: Run) -> None:
    draft = draft_save(alice, run, draft_make(seed=1), revision=0)
    config_publish(run, seed=77)
    with pytest.raises(DraftConflict) as conflict:
        draft_save(alice, run, draft_make(seed=2), revision=draft.revision, based_on=1)
    theirs = conflict.value.theirs
    assert theirs._state.adding
    assert (theirs.body["seed"], theirs.based_on) == (77, 2)
    kept = draft_save(alice, run, draft_make(seed=2), revision=theirs.revision, based_on=2)
    assert (kept.body["seed"], kept.based_on) == (2, 2)


def test_a_changed_draft_is_neither_replaced_nor_discarded(
    desk: Client, alice: User, run: Run
) -> None:
    old = draft_save(alice, run, draft_make(seed=1), revision=0).revision
    draft_save(alice, run, draft_make(seed=2), revision=old)
    with pytest.raises(DraftConflict):
        draft_import(alice, run, draft_make(seed=3), revision=old)
    with pytest.raises(DraftConflict):
        draft_discard(alice, run, revision=old)
    page = desk.post(f"{DRAFT}discard/", {"revision": str(old)}, follow=True).text
    assert "Not discarded" in page
    assert page.count(f'name="revision" value="{old + 1}"') == 3
    assert ConfigDraft.objects.get().body["seed"] == 2
    draft_import(alice, run, draft_make(seed=3), revision=old + 1)
    assert AuditEntry.objects.order_by("seq").last().code == "run.draft.replaced"  # type: ignore[union-attr]
    draft_discard(alice, run, revision=old + 2)
    assert not ConfigDraft.objects.exists()


def test_a_draft_that_is_behind_is_published_knowingly(desk: Client, alice: User, run: Run) -> None:
    draft = draft_save(alice, run, draft_make(seed=1), revision=0)
    config_publish(run, seed=77)
    ticks = {"revision": str(draft.revision), "accept": ["bootstrap_unknown", "too_few_peers"]}
    page = desk.get(f"{DRAFT}check/").text
    assert "Version 2 was published after this draft was begun" in page
    assert "<ins>77</ins>" in page
    assert "takes it back" in page
    assert 'name="over" value="2" required' in page
    for untold in ({}, {"over": "1"}, {"based_on": "1"}, {"over": "x"}):
        answer = desk.post(f"{DRAFT}check/", ticks | untold)
        assert answer.status_code == 409
        assert "Not published: version 2 was published meanwhile" in answer.text
    assert run.configs.count() == 2
    desk.post(f"{DRAFT}check/", ticks | {"over": "2"})
    assert run.configs.get(version=3).body["seed"] == 1
    assert not ConfigDraft.objects.exists()


def test_a_file_takes_the_place_of_a_draft_that_is_behind_knowingly(
    desk: Client, alice: User, run: Run
) -> None:
    assert 'name="over"' not in desk.get(DRAFT).text
    draft_save(alice, run, draft_make(seed=1), revision=0)
    config_publish(run, seed=77)
    assert 'name="over" value="2" required' in desk.get(DRAFT).text
    with pytest.raises(DraftConflict):
        draft_import(alice, run, draft_make(seed=3))
    assert ConfigDraft.objects.get().body["seed"] == 1
    kept = draft_import(alice, run, draft_make(seed=3), based_on=2)
    assert (kept.body["seed"], kept.based_on) == (3, 2)


def test_publishing_ends_the_draft_before_it_locks_the_audit_log(alice: User, run: Run) -> None:
    draft = draft_save(alice, run, draft_make(seed=1), revision=0)
    warning = Finding("w", Severity.WARNING, "Hm.", "Look.")
    with CaptureQueriesContext(connection) as queries:
        draft_publish(alice, run, revision=draft.revision, findings=[warning], accepted=["w"])
    said = [query["sql"] for query in queries.captured_queries]
    ended = next(i for i, sql in enumerate(said) if sql.startswith("DELETE"))
    assert ended < next(i for i, sql in enumerate(said) if "core_audithead" in sql)


def test_a_value_that_is_the_default_is_no_difference(desk: Client, run: Run) -> None:
    config_publish(run, seed=77)
    newest = body_own(config_publish(run, seed=77).body)
    apart, same = differences(draft_make(seed=1), newest, tasks_allowed(), title=run.title)
    assert [(row["field"].name, row["mine"], row["theirs"]) for row in apart] == [
        ("seed", "1", "77")
    ]
    assert ("swarm.compression", "") in same
    answer = desk.post(DRAFT, FORM | {"seed": "5", "revision": "0", "based_on": "1"})
    assert "files differ" not in answer.text


def test_files_of_other_runs_are_not_offered(alice: User, bob: User, run: Run) -> None:
    other = run_make(alice, "other")
    draft_file_add(alice, run, b"mine", "mine.json")
    draft_file_add(alice, other, b"secret", "secret-plan.json")
    run_member_add(alice, run, bob, RunMember.Part.ORGANISER)
    page = page_of(bob).get(DRAFT).text
    assert "mine.json" in page
    assert "secret-plan.json" not in page
    stored = Artifact.objects.get(name="secret-plan.json")
    page_of(bob).post(DRAFT, FORM | {"revision": "2", "based_on": "1", "artifact": stored.sha256})
    assert artifacts_of(ConfigDraft.objects.get(run=run).body) == []
    draft_publish(alice, other, revision=2, findings=[])
    assert "secret-plan.json" in {a.name for a in artifacts_stored(other, bob)}
    alice.is_superuser = True
    assert len(artifacts_stored(run, alice)) == 2
