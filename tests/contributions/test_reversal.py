"""Taking credit back in bulk."""

import pytest
from django.utils import timezone

from tests.factories import device_make, user_make
from tests.factories_ledger import Work, epoch_credit
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState
from web.accounts.models import Device, User
from web.contributions.ledger import entries_add, settlement_of
from web.contributions.models import ContributionTotal, LedgerEntry
from web.contributions.reversal import (
    entries_rejectable,
    entries_reverse,
    entries_reversible,
    reversal_sums,
)
from web.contributions.selectors import leaderboard, receipts
from web.contributions.services import entry_compensate, totals_rebuild
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.fixture
def devices(run: Run, bob: User, charlie: User) -> list[Device]:
    """bob's laptop and desk and charlie's machine, ten epochs each."""
    made = [device_make(bob, "laptop")[0], device_make(bob, "desk")[0], device_make(charlie)[0]]
    for epoch in range(10):
        work = [Work(device, 10 * (n + 1)) for n, device in enumerate(made)]
        epoch_credit(
            run, lineage=1, epoch=epoch, finished_at=timezone.now(), seconds=36.0, work=work
        )
    return made


def totals() -> dict[str, tuple[int, float]]:
    rows = ContributionTotal.objects.select_related("user")
    return {row.user.username: (row.samples, round(row.seconds, 3)) for row in rows}


def credit_late(
    run: Run, device: Device, state: CreditState = CreditState.CONFIRMED
) -> LedgerEntry:
    """Return an entry of one epoch after all others."""
    (entry,) = epoch_credit(
        run, lineage=1, epoch=99, finished_at=timezone.now(), seconds=1.0,
        work=[Work(device, 5)], state=state,
    )  # fmt: skip
    return entry


def test_everything_from_an_epoch_on_is_taken_back_and_nothing_is_erased(
    run: Run, devices: list[Device], alice: User, bob: User
) -> None:
    entries = entries_reversible(run, [1], bob, from_epoch=6)
    assert reversal_sums(entries) == {"num": 8, "total": 120, "first": 6, "last": 9}
    before = list(LedgerEntry.objects.order_by("pk").values())
    made = entries_reverse(alice, run, entries, "poisoned gradients")
    assert len(made) == 8
    assert list(LedgerEntry.objects.order_by("pk").values())[: len(before)] == before
    assert totals() == {"bob": (180, 12 * 36.0), "charlie": (300, 360.0)}
    board = {row.user: row for row in leaderboard(run).rows}
    assert (board["bob"].samples, board["bob"].rank) == (180, 2)
    assert {row.user: row.samples for row in leaderboard(run, "24h").rows} == {
        "charlie": 300, "bob": 180,
    }  # fmt: skip
    assert [row.corrected for row in receipts(devices[0], run)][:4] == [-10] * 4  # type: ignore[attr-defined]
    entry = AuditEntry.objects.get(code="ledger.reversed")
    assert entry.data == {
        "entries": 8,
        "rejected": 0,
        "samples": -120,
        "reason": "poisoned gradients",
    }
    kept = totals()
    totals_rebuild(run)
    assert totals() == kept


def test_doing_it_again_changes_nothing(
    run: Run, devices: list[Device], alice: User, bob: User
) -> None:
    for expected in (20, 0):
        entries = entries_reversible(run, [1], bob, from_epoch=0)
        assert len(entries_reverse(alice, run, entries, "x")) == expected
    assert totals()["bob"] == (0, 0.0)


def test_one_device_can_be_meant_alone_and_earlier_corrections_count(
    run: Run, devices: list[Device], alice: User, bob: User
) -> None:
    first = LedgerEntry.objects.filter(device=devices[0]).order_by("epoch").first()
    assert first is not None
    entry_compensate(alice, first, -4, "counted twice")
    entries = entries_reversible(run, [1], bob, from_epoch=0, device=devices[0])
    assert reversal_sums(entries)["total"] == 96
    entries_reverse(alice, run, entries, "x")
    assert totals()["bob"] == (200, 360.0)


def test_other_lineages_and_rejected_entries_are_left_alone(
    run: Run, devices: list[Device], bob: User
) -> None:
    assert not entries_reversible(run, [2], bob, from_epoch=0).exists()
    bob.banned_at = timezone.now()
    bob.save()
    devices[0].user = bob
    credit_late(run, devices[0])
    assert not entries_reversible(run, [1], bob, from_epoch=99).exists()


def test_what_still_waits_is_rejected_and_cannot_count_later(
    run: Run, devices: list[Device], alice: User, bob: User
) -> None:
    waiting = credit_late(run, devices[0], CreditState.PROVISIONAL)
    assert not entries_reversible(run, [1], bob, from_epoch=99).exists()
    found = entries_rejectable(run, [1], bob, from_epoch=6)
    assert list(found) == [waiting]
    assert not entries_rejectable(run, [1], bob, from_epoch=6, device=devices[1]).exists()
    entries_reverse(alice, run, entries_reversible(run, [1], bob, from_epoch=6), "x", waiting=found)
    entry = LedgerEntry.objects.get(settles=waiting)
    assert (entry.state, entry.samples, entry.reason) == ("rejected", 5, "x")
    assert not entries_rejectable(run, [1], bob, from_epoch=6).exists()
    assert AuditEntry.objects.get(code="ledger.reversed").data["rejected"] == 1
    assert totals()["bob"] == (180, 12 * 36.0)


def test_an_entry_that_waited_and_was_confirmed_is_taken_back_once(
    run: Run, devices: list[Device], alice: User, bob: User
) -> None:
    waiting = credit_late(run, devices[0], CreditState.PROVISIONAL)
    entries_add([settlement_of(waiting, 4, CreditState.CONFIRMED, "")])
    before = totals()["bob"]
    entries_reverse(alice, run, entries_reversible(run, [1], bob, from_epoch=99), "x")
    assert totals()["bob"] == (before[0] - 4, before[1] - 1.0)


def test_who_may_and_why(run: Run, devices: list[Device], alice: User, bob: User) -> None:
    entries = entries_reversible(run, [1], bob, from_epoch=0)
    for actor, reason, code in (
        (bob, "x", ErrorCode.FORBIDDEN),
        (user_make("dave", is_staff=True), "x", ErrorCode.FORBIDDEN),
        (alice, " ", ErrorCode.BODY_INVALID),
    ):
        with pytest.raises(AppError) as error:
            entries_reverse(actor, run, entries, reason)
        assert error.value.code == code
    assert not LedgerEntry.objects.exclude(corrects=None).exists()
