"""How people are named in public."""

from typing import Final

from django.contrib.auth.models import AnonymousUser

from web.accounts.models import User

HIDDEN_NAME: Final = "a volunteer"
"""Of somebody whose profile is private."""


def public_name(user: User, viewer: User | AnonymousUser | None = None) -> str:
    """Return the name of an account as the viewer may read it."""
    return user.username if user.is_profile_public or user == viewer else HIDDEN_NAME
