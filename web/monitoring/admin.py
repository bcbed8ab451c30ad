"""What coordinators saw, in Django's admin, to look at only."""

from django.contrib import admin

from web.core.admin import ReadOnlyAdmin
from web.monitoring.history_models import SwarmMoment, SwarmTurn
from web.monitoring.models import (
    EpochRecord,
    HarmUndo,
    MetricPoint,
    Peer,
    PeerMessage,
    RetiredPeer,
    RevocationList,
    RunEvent,
    RunSwarm,
)


@admin.register(Peer)
class PeerAdmin(ReadOnlyAdmin):
    list_display = ("run", "device", "role", "peer_id", "heartbeat_at", "seen_at")
    list_select_related = ("run", "device")


@admin.register(RunSwarm)
class RunSwarmAdmin(ReadOnlyAdmin):
    list_display = ("run", "coordinator", "last_seq", "received_at")
    list_select_related = ("run", "coordinator")


@admin.register(EpochRecord)
class EpochRecordAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "finished_at", "samples", "num_peers", "loss")
    list_select_related = ("run",)


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    list_display = ("run", "seq", "at", "kind", "text")
    list_select_related = ("run",)


@admin.register(RevocationList)
class RevocationListAdmin(ReadOnlyAdmin):
    list_display = ("run", "seq", "made_at", "seen_at")
    exclude = ("jws",)


@admin.register(HarmUndo)
class HarmUndoAdmin(ReadOnlyAdmin):
    list_display = ("run", "user", "from_epoch", "samples", "actor", "made_at")


@admin.register(MetricPoint)
class MetricPointAdmin(ReadOnlyAdmin):
    list_display = ("run", "resolution", "at", "epoch", "loss", "samples_per_second", "num_peers")
    list_select_related = ("run",)
    show_full_result_count = False


@admin.register(RetiredPeer)
class RetiredPeerAdmin(ReadOnlyAdmin):
    list_display = ("run", "device", "peer_id", "retired_at")
    list_select_related = ("run", "device")


@admin.register(PeerMessage)
class PeerMessageAdmin(ReadOnlyAdmin):
    list_display = ("peer", "text", "sent_by", "sent_at", "shown_at")
    list_select_related = ("peer", "sent_by")


@admin.register(SwarmMoment)
class SwarmMomentAdmin(ReadOnlyAdmin):
    list_display = ("run", "at", "resolution", "epoch", "state", "loss", "num_peers")
    list_select_related = ("run",)


@admin.register(SwarmTurn)
class SwarmTurnAdmin(ReadOnlyAdmin):
    list_display = ("run", "at", "condition", "reason")
    list_select_related = ("run",)
