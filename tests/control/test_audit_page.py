"""The desk's pages about what was done: filtered, paged, exported, readable."""

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories_runs import run_make
from web.accounts.models import User
from web.control.audit import changes_of
from web.core.audit import audit_record
from web.core.auditing import audit_check
from web.core.chain import link_hash
from web.core.models import AuditEntry
from web.runs.models import Run, RunMember
from web.runs.services import run_member_add, run_transition

SITE = "/control/audit/"
OF_RUN = "/control/runs/demo/audit/"


@pytest.fixture
def run(alice: User, bob: User) -> Run:
    run = run_make(alice)
    run_make(alice, "other")
    run_member_add(alice, run, bob, RunMember.Part.VIEWER, reason="he asked")
    run_transition(alice, run, "pause", "disk full")
    return run


def text_of(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


def test_an_act_is_shown_with_why_and_what_changed(desk: Client, run: Run) -> None:
    page = desk.get(f"{OF_RUN}?code=run.").text
    assert "he asked" in page
    assert "<del>none</del>" in page
    assert "<ins>viewer</ins>" in page
    assert "<del>open</del>" in page
    assert "<ins>paused</ins>" in page
    assert "Run state changed" in page


def test_a_run_shows_its_own_acts_only(desk: Client, run: Run) -> None:
    page = desk.get(OF_RUN).text
    assert ">demo</td>" in page
    assert ">other</td>" not in page
    assert ">other</td>" in desk.get(SITE).text


@pytest.mark.parametrize(
    ("query", "count"),
    [("actor=alice&code=run.state", 2), ("actor=bob", 0), ("target=nothing", 0),
     ("since=2020-01-01&code=run.member", 1), ("until=2020-01-01", 0),
     ("until=9999-12-31&code=run.member", 1), ("q=disk", 0),
     ("since=rubbish&code=run.member", 1), ("run=other", None), ("page=99999&code=run.member", 1)],
)  # fmt: skip
def test_acts_are_filtered(desk: Client, run: Run, query: str, count: int | None) -> None:
    page = desk.get(f"{OF_RUN}?{query}").text
    if count is not None:
        assert f"{count} act" in page
    if count == 0:
        assert "No act fits this filter." in page


def test_many_acts_cost_as_many_queries_as_few(
    desk: Client, run: Run, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(60):
        audit_record(None, "run.x.done", "demo", {"number": number})
    for address in (SITE, OF_RUN):
        with django_assert_max_num_queries(14):
            assert "page 1 of 2" in desk.get(address).text


def test_an_export_is_enough_to_check_the_chain_elsewhere(desk: Client, run: Run) -> None:
    answer = desk.get(f"{SITE}export/?format=ndjson")
    assert answer["Content-Disposition"] == 'attachment; filename="audit.ndjson"'
    rows = [json.loads(line) for line in text_of(answer).splitlines()]
    assert len(rows) == AuditEntry.objects.count()
    for row in rows:
        content = {name: row[name] for name in row if name not in ("previous", "hash")}
        assert link_hash(row["previous"], content) == row["hash"]


def test_an_export_follows_the_filter_and_is_safe_for_spreadsheets(
    desk: Client, run: Run, alice: User
) -> None:
    audit_record(alice, "run.x.done", "=cmd()", {"a": {"b": 1}}, run="demo")
    answer = desk.get(f"{OF_RUN}export/?format=csv&code=run.x")
    rows = list(csv.DictReader(StringIO(text_of(answer))))
    assert [(row["target"], json.loads(row["data"])) for row in rows] == [
        ("'=cmd()", {"a": {"b": 1}})
    ]
    assert desk.get(f"{OF_RUN}export/?format=exe").status_code == 422


def test_the_page_says_whether_the_chain_holds(desk: Client, run: Run) -> None:
    assert "it was not yet" in desk.get(SITE).text
    audit_check(timezone.now())
    assert "Chain holds" in desk.get(SITE).text


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        ({"old": "open", "new": "paused"}, [("", "open", "paused")]),
        ({"before": {"a_b": 1}, "after": {"a_b": 2}}, [("a b", 1, 2)]),
        ({"before": {"a": 1}}, [("a", 1, None)]),
        ({"before": None, "after": {"c": 3}}, [("c", None, 3)]),
        ({"x": 1}, []),
    ],
)
def test_what_changed_is_read_from_every_way_of_writing_it(
    data: dict[str, Any], changes: list[Any]
) -> None:
    assert changes_of(data) == changes
