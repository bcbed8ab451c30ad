"""Drafts: nothing typed is lost, two editors do not overwrite each other, publishing ends one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import user_make
from tests.factories_runs import config_publish, draft_make, run_make
from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.catalogue import presets_built_in, tasks_built_in
from web.runs.draft_body import (
    DraftError,
    body_errors,
    body_of_form,
    json_read,
    text_at,
)
from web.runs.findings import Finding, Severity
from web.runs.models import Artifact, ConfigDraft, Run, RunMember
from web.runs.schema_fields import SITE_SETS, config_fields, params_fields
from web.runs.services import (
    DraftConflict,
    draft_discard,
    draft_file_add,
    draft_import,
    draft_publish,
    draft_save,
    run_clone,
    run_member_add,
)
from web.runs.services import run_make as run_from_body

ALL = (*config_fields(), *params_fields(tasks_built_in()["albert"].params_schema))
WARNING = Finding("w", Severity.WARNING, "Hm.", "Look.")
ERROR = Finding("e", Severity.ERROR, "No.", "Mend it.")


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.mark.django_db
def test_a_draft_is_kept_as_typed_even_when_it_does_not_fit(alice: User, run: Run) -> None:
    body = draft_make(swarm={"target_batch_size": "many"})
    draft = draft_save(alice, run, body, revision=0)
    assert ConfigDraft.objects.get().body == body
    assert (draft.revision, draft.based_on, draft.edited_by) == (2, 1, alice)
    entry = AuditEntry.objects.get(code="run.draft.saved")
    assert entry.target == "demo"


@pytest.mark.django_db
def test_two_editors_of_one_draft_do_not_overwrite_each_other(
    alice: User, bob: User, run: Run
) -> None:
    run_member_add(alice, run, bob, RunMember.Part.ORGANISER)
    first = draft_save(alice, run, draft_make(seed=1), revision=0)
    draft_save(bob, run, draft_make(seed=2), revision=first.revision)
    with pytest.raises(DraftConflict) as conflict:
        draft_save(alice, run, draft_make(seed=3), revision=first.revision)
    assert conflict.value.theirs.body["seed"] == 2
    assert conflict.value.theirs.edited_by == bob
    assert ConfigDraft.objects.get().body["seed"] == 2
    draft_save(alice, run, draft_make(seed=3), revision=conflict.value.theirs.revision)
    assert ConfigDraft.objects.get().body["seed"] == 3


@pytest.mark.django_db
def test_two_editors_who_begin_at_once_conflict_too(alice: User, run: Run) -> None:
    draft_save(alice, run, draft_make(seed=1), revision=0)
    with pytest.raises(DraftConflict):
        draft_save(alice, run, draft_make(seed=2), revision=0)


@pytest.mark.django_db
def test_what_was_typed_while_the_draft_was_published_becomes_a_new_one(
    alice: User, run: Run
) -> None:
    draft = draft_save(alice, run, draft_make(seed=1), revision=0)
    draft_publish(alice, run, revision=draft.revision, findings=[])
    later = draft_save(alice, run, draft_make(seed=9), revision=draft.revision)
    assert (later.body["seed"], later.based_on) == (9, 2)


@pytest.mark.django_db
def test_errors_stop_publishing_and_warnings_need_a_tick(alice: User, run: Run) -> None:
    draft = draft_save(alice, run, draft_make(seed=5), revision=0)

    def publish(findings: list[Finding], accepted: list[str]) -> None:
        draft_publish(alice, run, revision=draft.revision, findings=findings, accepted=accepted)

    for findings, accepted in (([ERROR], ["e"]), ([WARNING], []), ([WARNING, ERROR], ["w"])):
        with pytest.raises(AppError) as error:
            publish(findings, accepted)
        assert error.value.code == ErrorCode.BODY_INVALID
    assert run.configs.count() == 1
    publish([WARNING], ["w", "unheard-of"])
    assert run.configs.first().body["seed"] == 5
    assert not ConfigDraft.objects.exists()
    assert AuditEntry.objects.get(code="run.warnings.accepted").data == {
        "version": 2,
        "codes": ["w"],
    }


@pytest.mark.django_db
def test_a_draft_that_changed_since_its_check_is_not_published(alice: User, run: Run) -> None:
    draft = draft_save(alice, run, draft_make(seed=5), revision=0)
    draft_save(alice, run, draft_make(seed=6), revision=draft.revision)
    with pytest.raises(DraftConflict):
        draft_publish(alice, run, revision=draft.revision, findings=[])
    assert run.configs.count() == 1


@pytest.mark.django_db
def test_nobody_else_writes_a_draft_and_a_run_that_is_over_gets_none(
    alice: User, bob: User, charlie: User, run: Run
) -> None:
    draft = draft_save(alice, run, draft_make(), revision=0)
    calls: list[Any] = [
        lambda user: draft_save(user, run, {}, revision=draft.revision),
        lambda user: draft_import(user, run, {}),
        lambda user: draft_file_add(user, run, b"x", "x.json"),
        lambda user: draft_publish(user, run, revision=draft.revision, findings=[]),
    ]
    for call in [*calls, lambda user: draft_discard(user, run)]:
        for user in (bob, charlie):
            with pytest.raises(AppError) as error:
                call(user)
            assert error.value.code == ErrorCode.FORBIDDEN
    for state in (RunState.FINISHING, RunState.FINISHED, RunState.ARCHIVED):
        Run.objects.update(state=state)
        for call in calls:
            with pytest.raises(AppError) as error:
                call(alice)
            assert error.value.code == ErrorCode.RUN_OVER
    assert not Artifact.objects.exists()


@pytest.mark.django_db
def test_a_replaced_or_discarded_draft_stays_in_the_audit_log(alice: User, run: Run) -> None:
    draft_save(alice, run, draft_make(seed=1), revision=0)
    draft_import(alice, run, draft_make(seed=2))
    assert AuditEntry.objects.get(code="run.draft.replaced").data["body"]["seed"] == 1
    draft_discard(alice, run)
    assert AuditEntry.objects.get(code="run.draft.discarded").data["body"]["seed"] == 2
    assert not ConfigDraft.objects.exists()


@pytest.mark.django_db
def test_a_stored_file_takes_the_place_of_one_of_the_same_name(alice: User, run: Run) -> None:
    draft_file_add(alice, run, b"one", "tokenizer.json")
    draft_file_add(alice, run, b"three", "tokenizer.json")
    files = ConfigDraft.objects.get().body["artifacts"]
    assert [(f["name"], f["size"]) for f in files] == [("tokenizer.json", 5)]
    assert ConfigDraft.objects.get().body["task"]["name"] == "tiny", "begun from the newest config"


@pytest.mark.django_db
def test_a_clone_has_the_config_and_nothing_of_the_history(alice: User, run: Run) -> None:
    config_publish(run, seed=77)
    clone = run_clone(alice, run, slug="again", title="Again")
    assert (clone.state, clone.summary, clone.is_public) == ("draft", run.summary, True)
    body = ConfigDraft.objects.get(run=clone).body
    assert body["seed"] == 77
    assert not SITE_SETS & set(body)
    assert "title" not in body
    assert not clone.configs.exists()
    with pytest.raises(AppError, match="slug: again is taken"):
        run_clone(alice, run, slug="again", title="Again")


@pytest.mark.django_db
@pytest.mark.parametrize("preset", presets_built_in(), ids=lambda p: p.key)
def test_every_preset_makes_a_run_whose_draft_fits(alice: User, preset: Any) -> None:
    run = run_from_body(alice, slug="new", title="New", summary="", body=preset.draft)
    body = ConfigDraft.objects.get(run=run).body
    schema = tasks_built_in()[body["task"]["name"]].params_schema
    assert body_errors(body, schema, title="New") == {}


@pytest.mark.django_db
def test_only_the_staff_makes_runs(bob: User, run: Run) -> None:
    with pytest.raises(AppError) as error:
        run_from_body(bob, slug="new", title="New", summary="", body={})
    assert error.value.code == ErrorCode.FORBIDDEN
    assert not Run.objects.filter(slug="new").exists()
    with pytest.raises(AppError):
        run_clone(user_make("dora"), run, slug="new", title="New")


def test_every_field_of_a_config_is_in_the_form_and_explains_itself() -> None:
    names = {field.name for field in config_fields()}
    assert {"seed", "swarm.robust_averaging", "report.heartbeat_seconds"} <= names
    for field in ALL:
        assert len(field.help) > 15, f"{field.name} needs a text below it in its model"
        assert field.help.endswith("."), field.name


@given(st.fixed_dictionaries({f.name: st.text(max_size=30) for f in ALL}))
def test_whatever_is_typed_is_kept_or_refused_and_never_breaks(data: dict[str, str]) -> None:
    try:
        body = body_of_form(data, ALL, [])
    except DraftError:
        return
    again = {field.name: text_at(body, field) for field in ALL}
    assert body_of_form(again, ALL, []) == body, "what the form shows is what it takes"
    schema = tasks_built_in()["albert"].params_schema
    assert all(text.endswith(".") for text in body_errors(body, schema, title="x").values())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["task", "swarm", "seed", "artifacts", "x"]), json_values))
def test_whatever_a_file_holds_its_errors_are_sentences(body: dict[str, Any]) -> None:
    errors = body_errors(body, tasks_built_in()["albert"].params_schema, title="x")
    assert all(text.endswith(".") for text in errors.values())
    for field in ALL:
        assert isinstance(text_at(body, field), str)


@pytest.mark.parametrize(
    "text",
    ["", "{", "NaN", '{"a": Infinity}', '{"a": 1e999}', "[" * 5000, '"\\u0000"', '"\\ud800"',
     '{"\\u0000": 1}', "1" * 5000, '{"a": 99999999999999999999}', "x" * 70_000,
     '{"a":' * 20 + "1" + "}" * 20],
)  # fmt: skip
def test_what_no_database_keeps_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(DraftError, match=r"^It .*\.$"):
        json_read(text)
