"""The people of every access test."""

import pytest
from django.utils import timezone

from tests.factories import user_make
from web.accounts.models import User


@pytest.fixture
def alice(db: None) -> User:
    """The organiser."""
    return user_make("alice", is_staff=True)


@pytest.fixture
def bob(db: None) -> User:
    """A volunteer."""
    return user_make("bob")


@pytest.fixture
def charlie(db: None) -> User:
    """An outsider: has an account and no part in any run."""
    return user_make("charlie")


@pytest.fixture
def mallory(db: None) -> User:
    """Suspended."""
    return user_make("mallory", banned_at=timezone.now(), banned_reason="spam")
