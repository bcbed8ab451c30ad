"""API tokens: shown once, kept hashed, scoped, ended."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import device_make, token_make
from training.protocol.errors import ErrorCode
from web.accounts.credentials import TOKEN_PREFIX, credential_of_token, token_hash
from web.accounts.models import ApiToken, User
from web.accounts.services import token_issue, token_revoke
from web.core.errors import AppError
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db


def refusal(value: str) -> ErrorCode:
    with pytest.raises(AppError) as error:
        credential_of_token(value, timezone.now())
    return error.value.code


def test_a_token_stands_for_its_account_scope_and_run(bob: User) -> None:
    token, value = token_issue(bob, "coordinator", name="c", run_slug="python-docs")
    credential = credential_of_token(value, timezone.now())
    assert credential.user == bob
    assert credential.scopes == {"read", "device", "coordinator"}
    assert (credential.run_slug, credential.token) == ("python-docs", token)


def test_nothing_kept_gives_the_token_away(bob: User) -> None:
    token, value = token_issue(bob, "read")
    assert value.startswith(TOKEN_PREFIX)
    assert len(value) > 40
    assert token.hash == token_hash(value)
    assert value not in str(vars(token)) + str(AuditEntry.objects.get().data)
    assert token.prefix == value[:9]


@pytest.mark.parametrize("value", ["by_unknown", "x", "a" * 500, "by_"])
def test_an_unknown_token_is_refused(value: str) -> None:
    assert refusal(value) == ErrorCode.TOKEN_INVALID


def test_an_expired_token_is_refused_as_expired(bob: User) -> None:
    assert refusal(token_make(bob, lifetime=timedelta(seconds=-1))) == ErrorCode.TOKEN_EXPIRED


def test_a_revoked_token_is_refused(bob: User, alice: User) -> None:
    token, value = token_issue(bob, "read")
    token_revoke(bob, token)
    token_revoke(alice, token)
    assert refusal(value) == ErrorCode.TOKEN_INVALID
    assert AuditEntry.objects.filter(code="token.revoked").count() == 1


def test_strangers_cannot_revoke_a_token(bob: User, charlie: User) -> None:
    token, value = token_issue(bob, "read")
    with pytest.raises(AppError):
        token_revoke(charlie, token)
    assert credential_of_token(value, timezone.now())


def test_a_token_of_a_banned_or_deactivated_account_says_banned(bob: User, mallory: User) -> None:
    assert refusal(token_make(mallory)) == ErrorCode.BANNED
    value = token_make(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert refusal(value) == ErrorCode.BANNED


def test_a_token_cannot_be_made_for_somebody_elses_device(bob: User, charlie: User) -> None:
    device, _ = device_make(charlie)
    with pytest.raises(AppError):
        token_issue(bob, "device", device=device)


def test_the_last_use_is_written_once_a_minute(bob: User) -> None:
    token, value = token_issue(bob, "read")
    now = timezone.now()

    def used_at() -> object:
        return ApiToken.objects.get(pk=token.pk).last_used_at

    credential_of_token(value, now)
    credential_of_token(value, now + timedelta(seconds=30))
    assert used_at() == now
    credential_of_token(value, now + timedelta(seconds=61))
    assert used_at() == now + timedelta(seconds=61)
