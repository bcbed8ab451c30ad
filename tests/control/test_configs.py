"""Runs and their configs at the desk, as each person meets them."""

import json
import socket
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories_runs import config_publish, draft_make, run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.runs.config_file import config_file_read
from web.runs.draft_body import DraftError
from web.runs.models import AllowedTask, Artifact, ConfigDraft, Run, RunMember
from web.runs.schema_fields import config_fields
from web.runs.services import draft_save, run_member_add

DRAFT = "/control/runs/demo/draft/"
FORM = {
    "revision": "0",
    "task.name": "tiny",
    "task.params.hidden": "8",
    "swarm.target_batch_size": "2,000",
    "swarm.min_peers": "1",
}
CUSTOM = {
    "name": "my-task",
    "summary": "Mine.",
    "params_schema": {
        "properties": {
            "size": {"type": "integer", "default": 3, "description": "How large."},
            "depth": {"type": "integer", "minimum": 1},
        },
        "required": ["depth"],
        "additionalProperties": False,
    },
}


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def page_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_form_has_every_field_with_its_explanation(desk: Client, run: Run) -> None:
    page = desk.get(DRAFT).text
    for field in config_fields():
        assert f'name="{field.name}"' in page, field.name
    assert "Samples of the whole swarm in one epoch" in page
    assert 'name="task.params.hidden" value="8"' in page
    assert not ConfigDraft.objects.exists(), "looking writes nothing"


def test_errors_stand_beside_their_fields_and_nothing_is_lost(desk: Client, run: Run) -> None:
    answer = desk.post(DRAFT, FORM | {"seed": "x<y", "task.params.classes": "1", "then": "check"},
                       follow=True)  # fmt: skip
    assert answer.redirect_chain[-1][0] == DRAFT, "it is not checked yet"
    page = answer.text
    assert "2 values do not fit yet" in page
    assert 'value="x&lt;y"' in page
    assert "This should be a whole number." in page
    assert "This should be greater than or equal to 2." in page
    assert ConfigDraft.objects.get().body["seed"] == "x<y"


def test_a_draft_is_checked_with_the_swarm_and_published_after_the_tick(
    desk: Client, run: Run
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"/ip4/127.0.0.1/tcp/{server.getsockname()[1]}/p2p/Qm"
    snapshot_take(swarm_make(run), bootstrap_peers=(closed,))
    answer = desk.post(DRAFT, FORM | {"swarm.min_peers": "5", "then": "check"}, follow=True)
    page = answer.text
    assert "With today&#x27;s swarm (2 trainers) an epoch takes about 3 min" in page
    assert "waits for peers: 2 of 5" in page
    assert "<del>100</del>" in page
    assert "The lineage stays (1)" in page
    revision = str(ConfigDraft.objects.get().revision)
    assert "No address at which the swarm is entered answers (1 dialled): connection" in page
    assert desk.post(f"{DRAFT}check/", {"revision": revision}).status_code == 422
    run.bootstrap_peers.all().delete()
    answer = desk.post(f"{DRAFT}check/", {"revision": revision, "accept": ["too_few_peers"]})
    assert answer.status_code == 422
    assert "No address is known" in answer.text
    assert run.configs.count() == 1
    codes = ["too_few_peers", "bootstrap_unknown"]
    answer = desk.post(f"{DRAFT}check/", {"revision": revision, "accept": codes}, follow=True)
    assert "Version 2 is published, lineage 1." in answer.text
    assert run.configs.first().body["swarm"]["target_batch_size"] == 2000
    assert not ConfigDraft.objects.exists()


def test_two_organisers_see_both_versions_and_choose(
    desk: Client, alice: User, bob: User, run: Run
) -> None:
    run_member_add(alice, run, bob, RunMember.Part.ORGANISER)
    page_of(bob).post(DRAFT, FORM | {"seed": "1"})
    answer = desk.post(DRAFT, FORM | {"seed": "2"})
    assert answer.status_code == 409
    assert "bob changed this draft meanwhile" in answer.text
    assert 'name="seed" value="2" checked' in answer.text
    assert 'name="seed" value="1"' in answer.text
    assert 'name="revision" value="2"' in answer.text
    assert ConfigDraft.objects.get().body["seed"] == 1
    desk.post(DRAFT, FORM | {"seed": "2", "revision": "2"})
    assert ConfigDraft.objects.get().body["seed"] == 2


def test_a_check_of_an_older_revision_publishes_nothing(
    desk: Client, alice: User, run: Run
) -> None:
    draft = draft_save(alice, run, draft_make(seed=1), revision=0)
    draft_save(alice, run, draft_make(seed=2), revision=draft.revision)
    ticks = ["bootstrap_unknown", "too_few_peers"]
    answer = desk.post(f"{DRAFT}check/", {"revision": str(draft.revision), "accept": ticks})
    assert answer.status_code == 409
    assert "changed meanwhile" in answer.text
    assert run.configs.count() == 1


def test_a_config_goes_out_as_a_file_and_comes_back_as_a_draft(desk: Client, run: Run) -> None:
    config_publish(run, seed=9)
    for form, kind in (("json", "application/json"), ("jws", "application/jose")):
        answer = desk.get(f"/control/runs/demo/configs/2/{form}/")
        assert (answer.status_code, answer["Content-Type"]) == (200, kind)
        assert f"demo-v2.{form}" in answer["Content-Disposition"]
        file = SimpleUploadedFile(f"a.{form}", answer.content)
        page = desk.post(f"{DRAFT}import/", {"file": file}, follow=True).text
        assert ("It was signed by this site." if form == "jws" else "is not signed") in page
        assert ConfigDraft.objects.get().body["seed"] == 9
        exported = json.loads(desk.get(f"{DRAFT}export/").content)
        assert exported == ConfigDraft.objects.get().body
        desk.post(f"{DRAFT}discard/")
    for version, form in ((3, "json"), (2, "exe"), (10**30, "json")):
        answer = desk.get(f"/control/runs/demo/configs/{version}/{form}/")
        assert answer.status_code == 404
    assert desk.get(f"{DRAFT}export/").status_code == 404


def test_a_config_of_another_site_is_taken_with_a_warning(desk: Client, run: Run) -> None:
    head, body, signature = config_publish(run).jws.split(".")
    forged = f"{head}.{body}.{signature[:-4]}AAAA".encode()
    page = desk.post(f"{DRAFT}import/", {"file": SimpleUploadedFile("a", forged)}, follow=True).text
    assert "Its signature is not one of this site" in page


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"{", b"[]", b"null", b"7", b'"x"', b"[" * 100_000, b"a.b.c",
     b"e30.e30.e30", b'{"task": ' * 30, b'{"task": 1, "x": NaN}', b'{"task": "\\u0000"}',
     b'{"task": "\\ud800"}', b'{"seed": 1}', b"x" * 300_000, b'{"task": 1e999}'],
)  # fmt: skip
def test_garbage_is_refused_in_a_sentence_and_changes_nothing(
    desk: Client, run: Run, content: bytes
) -> None:
    file = SimpleUploadedFile("a.json", content)
    answer = desk.post(f"{DRAFT}import/", {"file": file}, follow=True)
    assert answer.status_code == 200
    assert "Not imported. " in answer.text
    assert not ConfigDraft.objects.exists()
    answer = desk.post(
        "/control/new/",
        {"title": "X", "slug": "x", "summary": "x", "file": SimpleUploadedFile("a", content)},
    )
    assert answer.status_code == 200
    assert not Run.objects.filter(slug="x").exists()


def test_a_file_whose_values_do_not_fit_becomes_a_draft_with_its_errors(
    desk: Client, run: Run
) -> None:
    body = draft_make(swarm={"target_batch_size": "many"}, colour="red", task={"name": "magic"})
    file = SimpleUploadedFile("a.json", json.dumps(body).encode())
    page = desk.post(f"{DRAFT}import/", {"file": file}, follow=True).text
    assert "3 of its values do not fit." in page
    assert "<code>colour</code>: There is no such field." in page
    assert "This site allows no such task." in page


@pytest.mark.parametrize("body", [{"task": []}, {"task": {"name": {}}}, {"task": {"params": 3}},
                                  {"task": 1, "artifacts": [1, {"sha256": [2]}], "swarm": []},
                                  {"task": {"name": "tiny"}, "artifacts": {"a": 1}}])  # fmt: skip
def test_odd_shapes_are_shown_checked_and_saved_over(
    desk: Client, run: Run, body: dict[str, Any]
) -> None:
    file = SimpleUploadedFile("a.json", json.dumps(body).encode())
    assert desk.post(f"{DRAFT}import/", {"file": file}, follow=True).status_code == 200
    assert desk.get(f"{DRAFT}check/", follow=True).status_code == 200
    revision = ConfigDraft.objects.get().revision
    answer = desk.post(DRAFT, FORM | {"revision": str(revision), "seed": "4"}, follow=True)
    assert "The draft is saved" in answer.text
    assert desk.post(DRAFT, FORM).status_code == 409


def test_a_file_is_stored_and_named_by_the_draft(desk: Client, run: Run) -> None:
    file = SimpleUploadedFile("tokenizer.json", b"pieces")
    page = desk.post(f"{DRAFT}file/", {"artifact": file}, follow=True).text
    assert "tokenizer.json is stored" in page
    sha256 = Artifact.objects.get().sha256
    assert f'value="{sha256}" checked' in page
    revision = ConfigDraft.objects.get().revision
    desk.post(DRAFT, FORM | {"revision": str(revision)})
    assert "artifacts" not in ConfigDraft.objects.get().body, "its tick was taken away"
    for name, content in (("a b", b"x"), ("empty", b""), ("large", b"x" * 900_001)):
        file = SimpleUploadedFile("x", content)
        page = desk.post(f"{DRAFT}file/", {"artifact": file, "name": name}, follow=True).text
        assert "notice-error" in page, name
    assert Artifact.objects.count() == 1


def test_a_file_that_is_not_stored_here_is_named(desk: Client, alice: User, run: Run) -> None:
    entry = {"name": "tokenizer.json", "sha256": "0" * 64, "size": 5}
    draft_save(alice, run, draft_make(artifacts=[entry]), revision=0)
    assert "not stored on this site" in desk.get(DRAFT).text
    page = desk.get(f"{DRAFT}check/", follow=True).text
    assert "artifacts.0.sha256: this file is not stored on the site." in page
    assert desk.post(f"{DRAFT}check/", {"revision": "2"}).status_code == 302
    assert run.configs.count() == 1


def test_a_run_is_made_from_a_preset_as_a_draft_that_nobody_else_sees(
    desk: Client, alice: User, charlie: User
) -> None:
    page = desk.get("/control/new/").text
    for title in ("Tiny", "ALBERT, small", "ALBERT-large"):
        assert title in page
    data = {"title": "New", "slug": "new-run", "summary": "Ours.", "is_public": "on",
            "preset": "albert-demo"}  # fmt: skip
    answer = desk.post("/control/new/", data, follow=True)
    assert answer.redirect_chain[-1][0] == "/control/runs/new-run/draft/"
    assert "The task needs the file" not in answer.text
    run = Run.objects.get(slug="new-run")
    assert (run.state, run.organiser, run.draft.body["seed"]) == ("draft", alice, 7)
    page = desk.get("/control/runs/new-run/draft/check/").text
    assert "The task needs the file tokenizer.json" in page
    assert "disabled>Publish version 1" in page
    assert "new-run" not in page_of(charlie).get("/").text
    answer = desk.get("/control/runs/new-run/moves/open/", follow=True)
    assert "publish its draft" in answer.text
    for wrong, text in (({"slug": "New Run"}, "slug"), ({"slug": "new-run"}, "is taken"),
                        ({"slug": "x", "preset": ""}, "Choose one, or a file."),
                        ({"slug": "x", "preset": "magic"}, "Select a valid choice"),
                        ({"slug": "x", "title": "a\x00b"}, "Null characters")):  # fmt: skip
        answer = desk.post("/control/new/", data | wrong)
        assert answer.status_code == 200
        assert text in answer.text
    assert Run.objects.count() == 1


def test_a_run_is_cloned_at_the_desk(desk: Client, run: Run) -> None:
    assert 'value="demo-2"' in desk.get("/control/runs/demo/clone/").text
    data = {"title": "Again", "slug": "again"}
    assert "Again is made" in desk.post("/control/runs/demo/clone/", data, follow=True).text
    assert "is taken" in desk.post("/control/runs/demo/clone/", data).text
    assert ConfigDraft.objects.get(run__slug="again").body["task"]["name"] == "tiny"


def test_a_pause_may_have_an_end(desk: Client, run: Run) -> None:
    swarm = swarm_make(run)
    snapshot_take(swarm)
    url = "/control/runs/demo/moves/pause/"
    assert "2 trainers will stop computing within about 30 s" in desk.get(url).text
    for wrong, text in (({"until": "2020-01-01T00:00"}, "one minute at the earliest"),
                        ({"until": "soon"}, "Enter a valid date"),
                        ({"lasts": "60", "until": "2099-01-01T00:00"}, "not both"),
                        ({"lasts": "1"}, "Select a valid choice")):  # fmt: skip
        assert text in desk.post(url, wrong).text
    assert Run.objects.get().state == "open"
    page = desk.post(url, {"lasts": "60", "reason": "disk"}, follow=True).text
    assert "was paused by alice until" in page
    until = Run.objects.get().state_until
    assert until is not None
    assert 3500 < (until - timezone.now()).total_seconds() <= 3600


def test_a_message_is_sent_from_the_list(desk: Client, run: Run) -> None:
    page = desk.get("/control/").text
    for path in ("moves/pause/", "draft/", "message/"):
        assert f"/control/runs/demo/{path}" in page
    desk.post("/control/runs/demo/message/", {"text": "Back at <six>."})
    assert RunEvent.objects.first().text == "alice says: Back at <six>."  # type: ignore[union-attr]
    assert "This field is required" in desk.post("/control/runs/demo/message/", {}).text


def test_staff_who_do_not_organise_a_run_see_no_way_to_change_it(
    desk: Client, bob: User, run: Run
) -> None:
    bob.is_staff = True
    bob.save()
    page = page_of(bob).get("/control/").text
    assert "organised by alice" in page
    assert "/draft/" not in page
    page = page_of(bob).get("/control/runs/demo/").text
    assert "/draft/" not in page
    assert "/message/" not in page


def test_an_admin_allows_a_task_and_runs_are_made_of_it(
    desk: Client, alice: User, run: Run
) -> None:
    url = "/control/tasks/"
    assert desk.get(url).status_code == 403, "the staff is not enough"
    alice.is_superuser = True
    alice.save()
    for wrong in ("", "{", "[1]", '{"name": "X y"}', json.dumps(CUSTOM | {"params_schema": 3}),
                  json.dumps(CUSTOM | {"params_schema": {"properties": []}})):  # fmt: skip
        assert desk.post(url, {"entries": wrong}).status_code == 200, wrong
    assert not AllowedTask.objects.exists()
    page = desk.post(url, {"entries": json.dumps([CUSTOM, {"name": "tiny"}])}, follow=True).text
    assert "Allowed: my-task." in page
    entry = AuditEntry.objects.get(code="task.allowed")
    assert (entry.target, entry.data["before"]) == ("my-task", {})
    assert entry.data["after"]["fields"]
    data = {"title": "Mine", "slug": "mine", "summary": "x", "preset": "task:my-task"}
    page = desk.post("/control/new/", data, follow=True).text
    assert "How large." in page
    assert "This is needed." in page
    desk.post(f"{url}my-task/disallow/")
    assert "This site allows no such task." in desk.get("/control/runs/mine/draft/").text
    assert desk.post(f"{url}my-task/disallow/").status_code == 404


@pytest.mark.django_db
def test_tasks_and_files_are_allowed_from_the_command_line(tmp_path: Any) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([CUSTOM, CUSTOM | {"name": "other"}]))
    call_command("task_allow", file, "my-task")
    assert [task.name for task in AllowedTask.objects.all()] == ["my-task"]
    for wrong in ("missing.json", "bad.json"):
        (tmp_path / "bad.json").write_bytes(b"\xff")
        with pytest.raises(CommandError):
            call_command("task_allow", tmp_path / wrong)
    with pytest.raises(CommandError, match="no such task"):
        call_command("task_allow", file, "magic")
    call_command("artifact_store", file, "--name", "tasks.json")
    assert Artifact.objects.get().name == "tasks.json"
    with pytest.raises(CommandError):
        call_command("artifact_store", tmp_path / "missing")


@pytest.mark.django_db
def test_a_file_may_be_what_the_api_answers(client: Client, run: Run) -> None:
    data = client.get("/api/v1/runs/demo/config/").content
    assert config_file_read(data, timezone.now()).body["task"]["name"] == "tiny"
    with pytest.raises(DraftError, match="empty"):
        config_file_read(b"  ", timezone.now())


def test_the_pages_of_a_draft_cost_a_bounded_number_of_queries(
    desk: Client, alice: User, run: Run, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(6):
        draft_save(alice, run_make(alice, f"run-{number}"), draft_make(seed=3), revision=0)
        Artifact.objects.create(sha256=f"{number}" * 64, name="x", size=1)
    draft_save(alice, run, draft_make(seed=3), revision=0)
    for path, number in (("/control/", 13), (DRAFT, 15), (f"{DRAFT}check/", 21),
                         ("/control/new/", 11)):  # fmt: skip
        with django_assert_max_num_queries(number):
            assert desk.get(path).status_code == 200, path
