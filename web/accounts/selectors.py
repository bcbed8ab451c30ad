"""Reads of accounts."""

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from training.protocol.errors import ErrorCode
from web.accounts.models import ApiToken, Device, User
from web.core.errors import AppError

MAX_USERNAME = 150
"""Longer ones are nobody's; SQLite gives up on a pattern of 50,000 characters."""


def devices_for(user: User) -> QuerySet[Device]:
    """Return the account's machines, revoked ones last."""
    return Device.objects.filter(user=user).order_by("revoked_at", "-last_seen_at", "-id")


def device_visible(user: User, public_id: str) -> Device:
    """Return one of the account's machines (an admin sees all).

    Raises:
        AppError: NOT_FOUND.
    """
    devices = Device.objects.select_related("user").filter(public_id=public_id)
    if not user.is_superuser:
        devices = devices.filter(user=user)
    device = devices.first()
    if device is None:
        raise AppError(ErrorCode.NOT_FOUND, "You have no such device.")
    return device


def profile_visible(viewer: User | AnonymousUser, username: str) -> User:
    """Return an account whose profile the viewer may see.

    Raises:
        AppError: NOT_FOUND, also for one that exists and is private.
    """
    user = None
    if len(username) <= MAX_USERNAME:
        user = User.objects.filter(username__iexact=username, is_active=True).first()
    may_see = user is not None and (
        user.is_profile_public or user == viewer or (isinstance(viewer, User) and viewer.is_staff)
    )
    if user is None or not may_see:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such public profile.")
    return user


def tokens_for(user: User) -> QuerySet[ApiToken]:
    """Return the account's API tokens that still work or once did."""
    return ApiToken.objects.filter(user=user).select_related("device")
