"""Writes of monitoring, apart from snapshots (see ``ingest``)."""

from web.monitoring.services.challenges import challenge_check, challenge_issue
from web.monitoring.services.commands import peer_command_add, peer_pause, peer_resume
from web.monitoring.services.heartbeats import peer_heartbeat
from web.monitoring.services.joins import peer_join
from web.monitoring.services.messages import peer_message_send
from web.monitoring.services.settle import (
    live_state_rebuild,
    live_states_refresh,
    run_changed_announce,
    run_settle,
)

__all__ = [
    "challenge_check",
    "challenge_issue",
    "live_state_rebuild",
    "live_states_refresh",
    "peer_command_add",
    "peer_heartbeat",
    "peer_join",
    "peer_message_send",
    "peer_pause",
    "peer_resume",
    "run_changed_announce",
    "run_settle",
]
