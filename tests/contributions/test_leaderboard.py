"""Ranks, shares, periods, and who is not shown."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.contributions.test_ledger import credit
from tests.factories import device_make, user_make
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.contributions.selectors import leaderboard, ledger_rows, user_ledger_rows, user_totals
from web.core.errors import AppError
from web.runs.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.fixture
def devices(alice: User, bob: User, charlie: User, mallory: User) -> dict[str, Device]:
    people = [alice, bob, charlie, mallory, user_make("yard", is_service=True)]
    return {user.username: device_make(user)[0] for user in people}


def ranks(board: Any) -> list[tuple[int, str, int]]:
    return [(row.rank, row.user, row.samples) for row in board.rows]


def test_volunteers_are_ranked_by_samples_and_machines_of_the_site_are_summed(
    run: Run, devices: dict[str, Device], charlie: User
) -> None:
    names = {"alice": 10, "bob": 30, "charlie": 10, "yard": 50}
    credit(run, 0, {devices[name]: samples for name, samples in names.items()})
    board = leaderboard(run, "all", charlie)
    assert ranks(board) == [(1, "bob", 30), (2, "alice", 10), (2, "charlie", 10)]
    assert (board.managed_samples, board.total_samples, board.num_volunteers) == (50, 100, 3)
    assert [row.share for row in board.rows] == [0.3, 0.1, 0.1]
    assert board.rows[0].device_hours == pytest.approx(20 / 3600)
    assert board.me is not None
    assert (board.me.rank, board.me.user, board.me.samples) == (2, "charlie", 10)


def test_pages_of_a_board_go_on_counting(run: Run) -> None:
    for i in range(6):
        device = device_make(user_make(f"v{i}"))[0]
        credit(run, i, {device: (60, 50, 50, 50, 20, 10)[i]})
    whole = ranks(leaderboard(run))
    assert [rank for rank, _, _ in whole] == [1, 2, 2, 2, 5, 6]
    paged = [row for at in range(0, 6, 2) for row in ranks(leaderboard(run, limit=2, offset=at))]
    assert paged == whole
    assert leaderboard(run, offset=9).rows == []


@pytest.mark.parametrize(
    ("period", "samples"), [("24h", 1), ("7d", 11), ("30d", 111), ("all", 1111)]
)
def test_a_period_counts_epochs_that_ended_in_it(
    run: Run, devices: dict[str, Device], period: str, samples: int
) -> None:
    now = timezone.now()
    for epoch, (days, number) in enumerate(((0, 1), (2, 10), (20, 100), (60, 1000))):
        credit(run, epoch, {devices["bob"]: number}, now - timedelta(days=days, minutes=1))
    (row,) = leaderboard(run, period, now=now).rows
    assert row.samples == samples
    assert row.last_seen == now - timedelta(minutes=1)


def test_an_unknown_period_is_refused(run: Run) -> None:
    with pytest.raises(AppError) as error:
        leaderboard(run, "1y")
    assert error.value.code == ErrorCode.BODY_INVALID


def test_hidden_profiles_and_banned_accounts(
    run: Run, devices: dict[str, Device], bob: User, charlie: User
) -> None:
    User.objects.filter(pk=bob.pk).update(is_profile_public=False)
    devices["mallory"].user.banned_at = None  # earned before the ban
    credit(run, 0, {devices["bob"]: 10, devices["mallory"]: 99})
    bob.refresh_from_db()
    assert ranks(leaderboard(run)) == [(1, "a volunteer", 10)]
    assert ranks(leaderboard(run, viewer=bob)) == [(1, "bob", 10)]
    assert leaderboard(run, viewer=charlie).me is None


def test_an_accounts_totals_leave_private_runs_out(
    run: Run, alice: User, devices: dict[str, Device], bob: User
) -> None:
    secret = run_make(alice, "secret", is_public=False)
    credit(run, 0, {devices["bob"]: 10})
    credit(secret, 0, {devices["bob"]: 90})
    found = user_totals(bob)
    assert (found.samples, [row["slug"] for row in found.runs]) == (10, ["demo"])
    assert [entry.run.slug for entry in user_ledger_rows(bob)] == ["demo"]
    assert ledger_rows(secret, bob).get().samples == 90
    assert ledger_rows(secret, alice).count() == 0
