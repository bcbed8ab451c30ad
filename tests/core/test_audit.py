"""The audit log in the database: chained, append-only, checked."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from web.accounts.models import User
from web.core.append_only import (
    HEAD_MESSAGE,
    MESSAGE,
    triggers_drop,
    triggers_install,
    triggers_install_again,
)
from web.core.audit import audit_record, run_of
from web.core.auditing import AuditQuery, audit_check, audit_search
from web.core.chain import START
from web.core.models import AuditCheck, AuditEntry, AuditHead
from web.core.tasks import audit_check_task

CHANGES = [
    "UPDATE core_auditentry SET target = 'nobody'",
    "UPDATE core_auditentry SET seq = seq + 10",
    "DELETE FROM core_auditentry",
    "DELETE FROM core_auditentry WHERE seq = 2",
]


def acts_make(count: int = 4) -> None:
    for number in range(1, count + 1):
        audit_record(None, "x.done", f"thing {number}", {"number": number, "share": 0.1})


def execute(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def tampered(statement: str) -> None:
    """Change history as somebody with the database's password could."""
    triggers_drop()
    try:
        execute(statement)
    finally:
        triggers_install()


@pytest.mark.django_db
def test_each_entry_follows_the_one_before(alice: User) -> None:
    acts_make()
    audit_record(alice, "y.done", "z", {"when": timezone.now(), "bad": float("nan"), "big": 1e22})
    entries = list(AuditEntry.objects.order_by("seq"))
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.previous for entry in entries] == [START, *(e.hash for e in entries[:-1])]
    assert AuditHead.objects.get().hash == entries[-1].hash
    assert audit_check(timezone.now()).broken_seq is None


@pytest.mark.django_db
@pytest.mark.parametrize("statement", CHANGES)
def test_the_database_refuses_to_change_or_delete(statement: str) -> None:
    acts_make()
    with pytest.raises(DatabaseError, match=MESSAGE):
        execute(statement)
    triggers_drop()
    triggers_install_again()
    triggers_install_again()
    with pytest.raises(DatabaseError, match=MESSAGE):
        execute(statement)
    assert AuditEntry.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    ["UPDATE core_audithead SET seq = seq - 1", "UPDATE core_audithead SET hash = 'x'",
     "DELETE FROM core_audithead"],
)  # fmt: skip
def test_the_end_of_the_chain_only_moves_forward(statement: str) -> None:
    acts_make()
    with pytest.raises(DatabaseError, match=HEAD_MESSAGE):
        execute(statement)


@pytest.mark.django_db
def test_the_chain_cannot_fork() -> None:
    acts_make(2)
    _, second = AuditEntry.objects.order_by("seq")
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry.objects.create(
            seq=9, previous=second.previous, hash="x", at=timezone.now(), code="x", target="y"
        )


@pytest.mark.django_db
def test_an_act_that_is_undone_leaves_no_gap() -> None:
    acts_make(1)
    with transaction.atomic():
        audit_record(None, "x.done", "never")
        transaction.set_rollback(True)
    acts_make(1)
    assert list(AuditEntry.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2]
    assert audit_check(timezone.now()).broken_seq is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "broken", "said"),
    [
        ("UPDATE core_auditentry SET data = '{}' WHERE seq = 2", 2, "entry 2 was changed"),
        ("UPDATE core_auditentry SET actor_name = 'eve' WHERE seq = 3", 3, "entry 3 was changed"),
        ("DELETE FROM core_auditentry WHERE seq = 3", 3, "entry 3 is missing"),
        ("DELETE FROM core_auditentry WHERE seq = 4", 4, "ends at entry 3"),
        ("DELETE FROM core_auditentry", 1, "ends at entry 0"),
    ],
)
def test_what_somebody_with_the_database_changes_is_named(
    statement: str, broken: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    acts_make()
    tampered(statement)
    with pytest.raises(CommandError, match=said), caplog.at_level(logging.ERROR):
        call_command("audit_verify")
    check = AuditCheck.objects.get()
    assert check.broken_seq == broken
    assert said in caplog.text
    entry = AuditEntry.objects.get(code="audit.chain.broken")
    assert entry.data["seq"] == broken


@pytest.mark.django_db
def test_a_shorter_chain_with_a_fitting_end_is_known_by_the_earlier_check() -> None:
    acts_make()
    audit_check_task()
    tampered("DELETE FROM core_auditentry WHERE seq > 2")
    tampered(
        "UPDATE core_audithead SET seq = 2, hash = (SELECT hash FROM core_auditentry WHERE seq = 2)"
    )
    check = audit_check(timezone.now())
    assert (check.broken_seq, "earlier check saw 4" in check.text) == (3, True)


@pytest.mark.django_db
def test_the_command_says_how_many_hold() -> None:
    acts_make()
    out = StringIO()
    call_command("audit_verify", stdout=out)
    assert "4 entries hold" in out.getvalue()


@pytest.mark.django_db
def test_acts_are_found_by_who_what_where_and_when(alice: User) -> None:
    audit_record(alice, "run.state.changed", "demo", {"reason": "x"})
    audit_record(None, "peer.joined", "demo/abc")
    audit_record(None, "user.banned", "demo", {})
    now = timezone.now()
    found: list[tuple[AuditQuery, int]] = [
        (AuditQuery(), 3), (AuditQuery(actor="alice"), 1), (AuditQuery(actor="site"), 2),
        (AuditQuery(code="run."), 1), (AuditQuery(target="abc"), 1), (AuditQuery(run="demo"), 2),
        (AuditQuery(text="JOIN"), 1), (AuditQuery(since=now), 0), (AuditQuery(until=now), 3),
    ]  # fmt: skip
    for query, count in found:
        assert audit_search(query).count() == count, query
    assert run_of("user.banned", "demo") == "", "an account may be called like a run"


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_make_one_chain() -> None:
    def write(name: str) -> None:
        for number in range(10):
            with transaction.atomic():
                audit_record(None, "x.done", f"{name} {number}")

    run_all([lambda n=n: write(f"writer {n}") for n in range(8)])  # type: ignore[misc]
    assert AuditEntry.objects.count() == 80
    assert audit_check(timezone.now()).broken_seq is None


def run_all(jobs: list[Callable[[], None]]) -> None:
    if connection.vendor == "sqlite":  # in memory there is one connection: one after the other
        for job in jobs:
            job()
        return

    def with_own_connection(job: Callable[[], None]) -> None:
        job()
        connection.close()

    threads = [threading.Thread(target=with_own_connection, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_entries_from_before_the_chain_are_chained() -> None:
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes("core")
    triggers_drop()
    try:
        executor.migrate([("core", "0001_initial")])
        old = executor.loader.project_state([("core", "0001_initial")]).apps
        for number in range(3):
            old.get_model("core", "AuditEntry").objects.create(
                code="run.created", target=f"run-{number}", data={"share": 0.25, "list": [1, "ä"]}
            )
        executor.loader.build_graph()
        executor.migrate(newest)
    finally:
        triggers_install_again()
    rows = AuditEntry.objects.order_by("seq").values_list("seq", "run")
    assert list(rows) == [(1, "run-0"), (2, "run-1"), (3, "run-2")]
    acts_make(1)
    assert audit_check(timezone.now()).broken_seq is None
    with pytest.raises(DatabaseError, match=MESSAGE):
        execute(CHANGES[0])


@pytest.mark.postgres
def test_all_of_it_on_postgresql(postgres_url: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not postgres",
         __file__],
        env=os.environ | {"TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-4000:]
    assert "skipped" not in result.stdout
