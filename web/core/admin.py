"""The audit log in Django's admin: to read, never to change."""

from django.contrib import admin
from django.http import HttpRequest

from web.core.models import AuditCheck, AuditEntry, AuditHead


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows to look at: changes go through services, which sign, audit and announce them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "code", "target")
    list_filter = ("code",)
    search_fields = ("actor_name", "target")


@admin.register(AuditHead)
class AuditHeadAdmin(ReadOnlyAdmin):
    list_display = ("seq", "hash")


@admin.register(AuditCheck)
class AuditCheckAdmin(ReadOnlyAdmin):
    list_display = ("at", "num_entries", "head", "broken_seq", "text")
