"""The nightly comparison of totals and ledger."""

import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import device_make
from tests.factories_ledger import Work, epoch_credit
from tests.factories_runs import run_make
from training.protocol.states import CreditState
from web.accounts.models import User
from web.contributions.checking import CHECKS_KEPT, totals_check
from web.contributions.models import ContributionTotal, LedgerCheck
from web.contributions.services import totals_rebuild
from web.contributions.tasks import ledger_check_task
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _ledger(alice: User, bob: User, charlie: User) -> None:
    run, now = run_make(alice), timezone.now()
    for number, person in enumerate((bob, charlie)):
        work = [Work(device_make(person)[0], 10 + number)]
        epoch_credit(run, lineage=1, epoch=0, finished_at=now, seconds=20.0, work=work)
        epoch_credit(
            run, lineage=1, epoch=1, finished_at=now, seconds=20.0, work=work,
            state=CreditState.PROVISIONAL,
        )  # fmt: skip


def test_nothing_is_said_when_all_is_right(caplog: pytest.LogCaptureFixture) -> None:
    ledger_check_task()
    check = LedgerCheck.objects.get()
    assert (check.num_totals, check.num_differences, check.differences) == (2, 0, [])
    assert not AuditEntry.objects.filter(code="ledger.totals.differ").exists()
    assert not caplog.records


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ({"samples": 999}, 999),
        ({"epochs": 7}, 10),
        ({"seconds": 77.0}, 10),
        ({"last_at": None}, 10),
    ],
)
def test_a_wrong_total_is_logged_and_audited_until_it_is_rebuilt(
    bob: User, caplog: pytest.LogCaptureFixture, changes: dict[str, object], total: int
) -> None:
    ContributionTotal.objects.filter(user=bob).update(**changes)
    with caplog.at_level(logging.ERROR):
        check = totals_check(timezone.now())
    found = {"run": "demo", "user": bob.pk, "ledger": 10, "total": total}
    assert (check.num_differences, check.differences) == (1, [found])
    assert "1 totals differ from the ledger" in caplog.text
    assert AuditEntry.objects.get(code="ledger.totals.differ").data["first"] == found
    totals_rebuild()
    assert totals_check(timezone.now()).num_differences == 0


def test_a_missing_and_an_invented_total_are_found(bob: User, charlie: User, alice: User) -> None:
    ContributionTotal.objects.filter(user=bob).update(user=alice)
    check = totals_check(timezone.now())
    assert {row["user"] for row in check.differences} == {alice.pk, bob.pk}


def test_only_the_newest_checks_are_kept() -> None:
    now = timezone.now()
    LedgerCheck.objects.bulk_create(
        LedgerCheck(at=now - timedelta(days=n), num_totals=0, num_differences=0)
        for n in range(CHECKS_KEPT, 0, -1)
    )
    newest = totals_check(now)
    assert LedgerCheck.objects.count() == CHECKS_KEPT
    assert LedgerCheck.objects.first() == newest
