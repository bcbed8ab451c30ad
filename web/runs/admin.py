"""Runs in Django's admin: to look at, not to change past the services."""

from django.contrib import admin
from django.http import HttpRequest

from web.runs.models import Checkpoint, Run, RunConfigVersion, RunMember


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows whose changes have to be signed, audited or announced."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("slug", "title", "state", "organiser", "is_public")


@admin.register(RunConfigVersion)
class RunConfigVersionAdmin(ReadOnlyAdmin):
    list_display = ("run", "version", "lineage", "published_at", "expires_at", "published_by")


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "saved_at")


@admin.register(RunMember)
class RunMemberAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "part", "joined_at")
