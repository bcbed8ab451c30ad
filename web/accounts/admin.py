"""Accounts in Django's admin. Acts with consequences go through the control pages."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from web.accounts.models import ApiToken, Device, RetiredDeviceKey, User
from web.core.admin import ReadOnlyAdmin


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "email", "is_staff", "is_service", "banned_at", "date_joined")
    list_filter = ("is_staff", "is_service", "is_active")
    readonly_fields = ("banned_at", "banned_reason", "last_login", "date_joined")


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    list_display = ("public_id", "name", "user", "trainer_version", "last_seen_at", "revoked_at")
    search_fields = ("public_id", "name", "user__username")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("prefix", "user", "scope", "run_slug", "last_used_at", "revoked_at")
    search_fields = ("prefix", "user__username", "run_slug")
    exclude = ("hash",)


@admin.register(RetiredDeviceKey)
class RetiredDeviceKeyAdmin(ReadOnlyAdmin):
    list_display = ("device", "kid", "retired_at")
    list_select_related = ("device",)
