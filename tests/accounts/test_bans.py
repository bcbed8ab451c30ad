"""A ban ends everything at once, and only those who may can make one."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import token_make, user_make
from training.protocol.errors import ErrorCode
from web.accounts.credentials import credential_of_token
from web.accounts.models import User
from web.accounts.services import service_user_get, user_ban, user_register, user_unban
from web.core.errors import AppError
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_a_ban_ends_sessions_and_tokens_and_is_written_down(alice: User, bob: User) -> None:
    browser = Client()
    browser.force_login(bob)
    value = token_make(bob)
    user_ban(alice, bob, "spam")
    assert browser.get("/api/v1/me/").status_code == 401
    with pytest.raises(AppError) as error:
        credential_of_token(value, timezone.now())
    assert error.value.code == ErrorCode.BANNED
    entry = AuditEntry.objects.get(code="user.banned")
    assert (entry.actor_name, entry.target, entry.data) == ("alice", "bob", {"reason": "spam"})


def test_after_a_ban_is_lifted_old_tokens_stay_ended(alice: User, bob: User) -> None:
    value = token_make(bob)
    user_ban(alice, bob, "spam")
    user_unban(alice, bob)
    bob.refresh_from_db()
    assert not bob.is_banned
    with pytest.raises(AppError) as error:
        credential_of_token(value, timezone.now())
    assert error.value.code == ErrorCode.TOKEN_INVALID
    assert credential_of_token(token_make(bob), timezone.now())


def test_who_may_ban_whom(alice: User, bob: User, charlie: User) -> None:
    root = user_make("rooty", is_staff=True, is_superuser=True)
    banned_staff = user_make("dave", is_staff=True, banned_at=timezone.now())
    allowed = [(alice, bob), (root, alice)]
    refused = [(bob, charlie), (alice, alice), (alice, root), (banned_staff, bob)]
    for actor, user in refused:
        with pytest.raises(AppError) as error:
            user_ban(actor, user, "")
        assert error.value.code == ErrorCode.FORBIDDEN
    for actor, user in allowed:
        user_ban(actor, user, "")


def test_a_service_account_is_made_once_and_cannot_log_in(db: None) -> None:
    service = service_user_get("service-python-docs")
    assert service_user_get("service-python-docs") == service
    assert service.is_service
    assert not service.has_usable_password()


def test_a_service_account_never_takes_over_a_persons(bob: User) -> None:
    with pytest.raises(AppError):
        service_user_get("bob")


def test_an_organiser_is_registered_without_the_page(db: None) -> None:
    user = user_register(username="organiser", password="a long password", is_staff=True)
    assert user.is_staff
    assert user.check_password("a long password")
    assert AuditEntry.objects.get().code == "user.registered"
