"""The ledger in Django's admin, to look at only."""

from django.contrib import admin

from web.contributions.models import (
    ContributionTotal,
    EpochEvidence,
    LedgerCheck,
    LedgerEntry,
    Suspicion,
)
from web.core.admin import ReadOnlyAdmin


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "user", "device", "samples", "state", "reason")
    list_select_related = ("run", "user", "device")


@admin.register(ContributionTotal)
class ContributionTotalAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "samples", "epochs", "last_at")
    list_select_related = ("run", "user")


@admin.register(EpochEvidence)
class EpochEvidenceAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "accumulated", "finished_at", "settled_at")
    list_select_related = ("run",)


@admin.register(Suspicion)
class SuspicionAdmin(ReadOnlyAdmin):
    list_display = ("run", "device", "kind", "state", "at", "decided_by", "reason")
    list_select_related = ("run", "device", "decided_by")


@admin.register(LedgerCheck)
class LedgerCheckAdmin(ReadOnlyAdmin):
    list_display = ("at", "num_totals", "num_differences")
