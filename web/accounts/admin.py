"""Accounts in Django's admin. Acts with consequences go through the control pages."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import Model
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse

from web.accounts.models import ApiToken, Device, RetiredDeviceKey, User
from web.core.admin import ReadOnlyAdmin
from web.core.audit import audit_record

_PERSONAL = frozenset({"email", "first_name", "last_name"})
"""Of these the audit log, which forgets nothing, says only that they were changed."""
_SECRET = frozenset({"password", "password1", "password2", "usable_password"})


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """Accounts are changed here and suspended at the desk; none is deleted: history names them."""

    list_display = ("username", "email", "is_staff", "is_service", "banned_at", "date_joined")
    list_filter = ("is_staff", "is_service", "is_active")
    readonly_fields = ("banned_at", "banned_reason", "last_login", "date_joined")

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_related(self, request: Any, form: Any, formsets: Any, change: bool) -> None:
        """Save what belongs to the account, the last of it; then write down what changed."""
        super().save_related(request, form, formsets, change)
        names = [name for name in form.changed_data if name not in _SECRET]
        if not change:
            data: dict[str, Any] = {"after": _values(form.cleaned_data, names)}
            audit_record(request.user, "user.registered", form.instance.username, data)
        elif names:
            before, after = _values(form.initial, names), _values(form.cleaned_data, names)
            data = {"before": before, "after": after}
            audit_record(request.user, "user.changed", form.instance.username, data)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Set a new password, and write down that somebody did."""
        rows = User.objects.filter(pk=id) if id.isdecimal() else User.objects.none()
        with transaction.atomic():
            before = rows.values_list("username", "password").first()
            response = super().user_change_password(request, id, form_url)
            if before and rows.values_list("username", "password").first() != before:
                audit_record(request.user, "user.password.changed", before[0])  # type: ignore[arg-type]
        return response


def _values(source: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: "personal" if name in _PERSONAL else _plain(source.get(name)) for name in names}


def _plain(value: Any) -> Any:
    """Return a field's value as the audit log keeps it; groups and rights by their names."""
    if isinstance(value, list | tuple | QuerySet):
        return sorted(map(str, value))
    return str(value) if isinstance(value, Model) else value


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
