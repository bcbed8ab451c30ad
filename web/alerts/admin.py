"""Alerts in Django's admin, to look at only: what is done about them is audited at the desk."""

from django.contrib import admin

from web.alerts.models import (
    Alert,
    AlertEvent,
    AlertMail,
    AlertSettings,
    AlertTrack,
    Webhook,
    WebhookDelivery,
)
from web.core.admin import ReadOnlyAdmin


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("run", "kind", "severity", "state", "opened_at", "closed_at")
    list_filter = ("kind", "severity", "state")
    list_select_related = ("run",)


@admin.register(AlertEvent)
class AlertEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "alert", "kind", "actor", "text")
    list_select_related = ("alert", "actor")


@admin.register(AlertTrack)
class AlertTrackAdmin(ReadOnlyAdmin):
    list_display = ("run", "kind", "is_open", "changing_since", "checked_at", "muted_until")
    list_select_related = ("run",)


@admin.register(AlertSettings)
class AlertSettingsAdmin(ReadOnlyAdmin):
    list_display = ("run",)
    list_select_related = ("run",)


@admin.register(AlertMail)
class AlertMailAdmin(ReadOnlyAdmin):
    list_display = ("run", "user")
    list_select_related = ("run", "user")


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("run", "host", "created_at", "num_failed", "disabled_at")
    list_select_related = ("run",)
    exclude = ("secret", "url")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "webhook", "event", "state", "num_attempts", "status")
    list_filter = ("state", "event")
    list_select_related = ("webhook",)
