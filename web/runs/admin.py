"""Runs in Django's admin: to look at, not to change past the services."""

from django.contrib import admin

from web.core.admin import ReadOnlyAdmin
from web.runs.models import (
    AllowedTask,
    Artifact,
    BootstrapPeer,
    Checkpoint,
    ConfigDraft,
    Run,
    RunBar,
    RunConfigVersion,
    RunDeviceBar,
    RunJoinRequest,
    RunMember,
)


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


@admin.register(RunBar)
class RunBarAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "reason", "barred_by", "barred_at")


@admin.register(ConfigDraft)
class ConfigDraftAdmin(ReadOnlyAdmin):
    list_display = ("run", "revision", "based_on", "edited_by", "edited_at")


@admin.register(AllowedTask)
class AllowedTaskAdmin(ReadOnlyAdmin):
    list_display = ("name", "summary", "allowed_by", "allowed_at")


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    list_display = ("name", "sha256", "size", "created_at")


@admin.register(BootstrapPeer)
class BootstrapPeerAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "address", "seen_at")
    list_select_related = ("run",)


@admin.register(RunDeviceBar)
class RunDeviceBarAdmin(ReadOnlyAdmin):
    list_display = ("run", "device", "reason", "barred_by", "barred_at", "expires_at")
    list_select_related = ("run", "device", "barred_by")


@admin.register(RunJoinRequest)
class RunJoinRequestAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "state", "asked_at", "decided_by", "decided_at")
    list_select_related = ("run", "user", "decided_by")
