"""The ledger in Django's admin, to look at only."""

from django.contrib import admin

from web.contributions.models import ContributionTotal, LedgerEntry
from web.core.admin import ReadOnlyAdmin


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "user", "device", "samples", "state", "reason")
    list_select_related = ("run", "user", "device")


@admin.register(ContributionTotal)
class ContributionTotalAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "samples", "epochs", "last_at")
    list_select_related = ("run", "user")
