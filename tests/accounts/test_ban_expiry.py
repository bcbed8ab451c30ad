"""Suspensions for a time: they end by themselves, and not before."""

from datetime import timedelta

import pytest
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.services import user_ban, users_unban_expired
from web.accounts.tasks import bans_expire_task
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.project.celery import app
from web.runs.tasks import bars_expire_task


def test_a_suspension_for_a_time_ends_after_it(alice: User, bob: User, charlie: User) -> None:
    now = timezone.now()
    user_ban(alice, bob, "spam", expires_at=now + timedelta(hours=1))
    user_ban(alice, charlie, "spam")
    assert "until" in bob.ban_text
    assert users_unban_expired(now + timedelta(minutes=59)) == 0
    assert users_unban_expired(now + timedelta(minutes=61)) == 1
    bob.refresh_from_db()
    charlie.refresh_from_db()
    assert (bob.is_banned, bob.banned_until, charlie.is_banned) == (False, None, True)
    entry = AuditEntry.objects.get(code="user.unbanned")
    assert (entry.actor_name, entry.data["reason"]) == ("", "its time was over")
    assert entry.data["before"] == {"reason": "spam"}


def test_suspending_again_replaces_the_end(alice: User, bob: User) -> None:
    now = timezone.now()
    user_ban(alice, bob, "spam", expires_at=now + timedelta(hours=1))
    user_ban(alice, bob, "worse")
    assert users_unban_expired(now + timedelta(days=999)) == 0
    with pytest.raises(AppError) as error:
        user_ban(alice, bob, "x", expires_at=now - timedelta(seconds=1))
    assert error.value.code == ErrorCode.BODY_INVALID


def test_a_suspension_that_a_person_lifts_is_not_lifted_again(alice: User, bob: User) -> None:
    bans_expire_task()
    bars_expire_task()
    assert not AuditEntry.objects.exists()


def test_every_task_of_the_schedule_exists() -> None:
    app.loader.import_default_modules()
    for name, entry in app.conf.beat_schedule.items():
        assert entry["task"] in app.tasks, name
