"""The ledger is only added to; totals follow it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import device_make, user_make
from tests.factories_ledger import Work, epoch_credit
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.contributions.models import (
    ContributionTotal,
    LedgerEntry,
    LedgerIsAppendOnlyError,
)
from web.contributions.selectors import receipts
from web.contributions.services import entry_compensate, totals_rebuild
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run

pytestmark = pytest.mark.django_db


def credit(run: Run, epoch: int, work: dict[Device, int], at: datetime | None = None) -> Any:
    return epoch_credit(
        run,
        lineage=1,
        epoch=epoch,
        finished_at=at or timezone.now(),
        seconds=20.0,
        work=[Work(device, samples) for device, samples in work.items()],
    )


def totals() -> dict[str, tuple[int, float, int]]:
    rows = ContributionTotal.objects.select_related("user")
    return {row.user.username: (row.samples, row.seconds, row.epochs) for row in rows}


def test_work_becomes_entries_and_totals_once(alice: User, bob: User, charlie: User) -> None:
    run = run_make(alice)
    laptop, desk, other = device_make(bob)[0], device_make(bob)[0], device_make(charlie)[0]
    work = {laptop: 10, desk: 20, other: 5}
    assert len(credit(run, 0, work)) == 3
    assert credit(run, 0, work) == []
    assert len(credit(run, 0, {**work, device_make(bob)[0]: 1})) == 1
    credit(run, 1, {laptop: 7, other: 0})
    assert totals() == {"bob": (38, 80.0, 4), "charlie": (5, 20.0, 1)}
    last = ContributionTotal.objects.get(user=bob).last_at
    assert last == LedgerEntry.objects.filter(user=bob).latest("finished_at").finished_at


def test_nobody_changes_history(alice: User, bob: User) -> None:
    credit(run_make(alice), 0, {device_make(bob)[0]: 10})
    entry = LedgerEntry.objects.get()
    entry.samples = 1000
    for change in (
        entry.save,
        entry.delete,
        LedgerEntry.objects.all().delete,
        lambda: LedgerEntry.objects.update(samples=1),
    ):
        with pytest.raises(LedgerIsAppendOnlyError):
            change()
    assert LedgerEntry.objects.get().samples == 10


def test_the_database_refuses_doubles_and_negative_work(alice: User, bob: User) -> None:
    run, device = run_make(alice), device_make(bob)[0]
    credit(run, 0, {device: 10})
    for epoch, samples in ((0, 10), (1, -1)):
        with pytest.raises(IntegrityError), transaction.atomic():
            LedgerEntry.objects.create(
                run=run, lineage=1, epoch=epoch, device=device, user=bob, samples=samples,
                state="confirmed", finished_at=timezone.now(),
            )  # fmt: skip


def test_a_correction_is_an_entry_of_its_own(alice: User, bob: User) -> None:
    run, device = run_make(alice), device_make(bob)[0]
    (entry,) = credit(run, 0, {device: 10})
    correction = entry_compensate(alice, entry, -4, "counted twice")
    assert (correction.corrects, correction.samples) == (entry, -4)
    assert totals() == {"bob": (6, 20.0, 1)}
    (receipt,) = receipts(device, run)
    assert receipt.samples + receipt.corrected == 6  # type: ignore[attr-defined]
    audit = AuditEntry.objects.get(code="ledger.corrected")
    assert (audit.actor_name, audit.data["samples"]) == ("alice", -4)
    for actor, target, samples, reason, code in (
        (bob, entry, -1, "x", ErrorCode.FORBIDDEN),
        (alice, correction, 1, "x", ErrorCode.BODY_INVALID),
        (alice, entry, -7, "x", ErrorCode.BODY_INVALID),
        (alice, entry, -1, " ", ErrorCode.BODY_INVALID),
    ):
        with pytest.raises(AppError) as error:
            entry_compensate(actor, target, samples, reason)
        assert error.value.code == code
    totals_rebuild()
    assert totals() == {"bob": (6, 20.0, 1)}


def test_totals_are_made_anew_by_a_command(alice: User, bob: User) -> None:
    first, second = run_make(alice), run_make(alice, "second")
    device = device_make(bob)[0]
    credit(first, 0, {device: 10})
    credit(second, 0, {device: 5})
    before = list(ContributionTotal.objects.order_by("run").values_list("samples", "epochs"))
    ContributionTotal.objects.all().delete()
    call_command("rebuild_totals", run="demo")
    assert ContributionTotal.objects.count() == 1
    call_command("rebuild_totals")
    after = list(ContributionTotal.objects.order_by("run").values_list("samples", "epochs"))
    assert after == before == [(10, 1), (5, 1)]
    with pytest.raises(CommandError, match="There is no run 'nothing'"):
        call_command("rebuild_totals", run="nothing")


reports = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.dictionaries(st.integers(0, 3), st.integers(0, 50), max_size=4),
        st.sampled_from([None, "ban", "correct"]),
    ),
    max_size=8,
)


@pytest.fixture
def machines(alice: User) -> tuple[Run, list[Device]]:
    people = [user_make(f"v{i}") for i in range(2)]
    return run_make(alice), [device_make(people[i % 2])[0] for i in range(4)]


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example is rolled back
)
@given(found=reports)
def test_growing_totals_equal_totals_made_anew(
    machines: tuple[Run, list[Device]],
    alice: User,
    found: list[tuple[int, dict[int, int], str | None]],
) -> None:
    run, devices = machines
    with transaction.atomic():
        for number, (epoch, work, act) in enumerate(found):
            at = timezone.now() + timedelta(seconds=number)
            devices[0].user.banned_at = at if act == "ban" else None
            made = credit(run, epoch, {devices[i]: n for i, n in work.items()}, at)
            if act == "correct" and made:
                entry_compensate(alice, made[0], -made[0].samples, "wrong")
        grown = {name: row for name, row in totals().items() if any(row)}
        last = dict(ContributionTotal.objects.values_list("user", "last_at"))
        totals_rebuild(run)
        assert totals() == grown
        assert dict(ContributionTotal.objects.values_list("user", "last_at")) == last
        transaction.set_rollback(True)
