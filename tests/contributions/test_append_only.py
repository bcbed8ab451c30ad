"""The database itself refuses to change the ledger, whoever asks."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from tests.factories import device_make
from tests.factories_ledger import Work, epoch_credit
from tests.factories_runs import run_make
from web.accounts.models import User
from web.contributions.append_only import MESSAGE, triggers_drop, triggers_install_again
from web.contributions.models import LedgerEntry

CHANGES = [
    "UPDATE contributions_ledgerentry SET samples = samples + 1",
    "UPDATE contributions_ledgerentry SET state = 'confirmed'",
    "DELETE FROM contributions_ledgerentry",
    "DELETE FROM contributions_ledgerentry WHERE samples > 5",
]


def _ledger_make(alice: User, bob: User) -> None:
    run, work, now = run_make(alice), [Work(device_make(bob)[0], 10)], timezone.now()
    with transaction.atomic():
        epoch_credit(run, lineage=1, epoch=0, finished_at=now, seconds=20.0, work=work)


def _execute(statement: str) -> Callable[[], None]:
    def run() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)

    return run


def _refuses(change: Callable[[], object]) -> None:
    with pytest.raises(DatabaseError, match=MESSAGE):
        change()
    assert list(LedgerEntry.objects.values_list("samples", "state")) == [(10, "confirmed")]


@pytest.mark.django_db
@pytest.mark.parametrize("statement", CHANGES)
def test_the_database_refuses_to_change_or_delete(alice: User, bob: User, statement: str) -> None:
    _ledger_make(alice, bob)
    _refuses(_execute(statement))


@pytest.mark.django_db
def test_the_refusal_survives_migrations_that_remake_the_table(alice: User, bob: User) -> None:
    _ledger_make(alice, bob)
    triggers_drop()
    triggers_install_again()
    triggers_install_again()
    _refuses(_execute(CHANGES[0]))


@pytest.mark.django_db(transaction=True)
def test_it_cannot_be_emptied_unless_it_is_empty(alice: User, bob: User) -> None:
    is_postgres = connection.vendor == "postgresql"
    words = "TRUNCATE {} CASCADE" if is_postgres else "DELETE FROM {}"  # SQLite's way to empty it
    empty = _execute(words.format("contributions_ledgerentry"))
    empty()
    _ledger_make(alice, bob)
    _refuses(empty)


@pytest.mark.postgres
def test_postgresql_refuses_all_of_it(postgres_url: str) -> None:
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
