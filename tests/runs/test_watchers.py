"""Who of many people may still see a run, asked at once."""

from itertools import product
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories_runs import run_make
from web.accounts.models import User
from web.core.errors import AppError
from web.runs.models import Run, RunBar, RunMember
from web.runs.selectors import run_get_visible, run_watchers_allowed

pytestmark = pytest.mark.django_db

NOW = timezone.now()
ACCOUNTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "staff": {"is_staff": True},
    "superuser": {"is_superuser": True},
    "service": {"is_service": True},
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "well": {},
    "banned": {"banned_at": NOW},
    "inactive": {"is_active": False},
}
PARTS = ["", *RunMember.Part.values]
RUNS = list(product(("draft", "open", "paused", "finished"), (True, False)))


def sees(user: User | None, slug: str) -> bool:
    """What the selector for one person says."""
    if user is not None and (user.is_banned or not user.is_active):
        return False
    try:
        run_get_visible(user, slug)
    except AppError:
        return False
    return True


@pytest.fixture
def everybody(alice: User) -> dict[User, tuple[str, bool]]:
    """One account of each kind and condition, with each part, barred and not."""
    return {
        User.objects.create(username=f"{kind}-{condition}-{part}-{is_barred}", **fields, **state): (
            part,
            is_barred,
        )
        for (kind, fields), (condition, state), part, is_barred in product(
            ACCOUNTS.items(), CONDITIONS.items(), PARTS, (False, True)
        )
    }


def parts_give(run: Run, everybody: dict[User, tuple[str, bool]]) -> None:
    for user, (part, is_barred) in everybody.items():
        if part:
            RunMember.objects.create(run=run, user=user, part=part)
        if is_barred:
            RunBar.objects.create(run=run, user=user, reason="noise", barred_at=NOW)


def test_the_set_is_what_the_selector_says_of_each_person(
    alice: User,
    everybody: dict[User, tuple[str, bool]],
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = run_make(alice)
    parts_give(run, everybody)
    known: list[User | None] = [None, alice, *everybody]
    ids = [None if user is None else user.pk for user in known]
    for is_alice_barred in (False, True):
        if is_alice_barred:
            RunBar.objects.create(run=run, user=alice, reason="noise", barred_at=NOW)
        for state, is_public in RUNS:
            Run.objects.filter(pk=run.pk).update(state=state, is_public=is_public)
            with django_assert_num_queries(2):
                allowed = run_watchers_allowed("demo", [*ids, 10**6])
            single = {user.pk if user else None for user in known if sees(user, "demo")}
            assert allowed == single, (state, is_public)
            assert (None in allowed) == (is_public and state != "draft")
            assert 0 < len(allowed) < len(known)


def test_nobody_watches_a_run_that_is_gone(alice: User) -> None:
    assert run_watchers_allowed("gone", [None, alice.pk]) == set()
