"""States as people read them. Values of states are unique across runs, peers and workers."""

from typing import Final

STATE_WORDS: Final[dict[str, str]] = {
    "draft": "Draft",
    "open": "Open",
    "waiting_for_peers": "Waiting for peers",
    "warming_up": "Warming up",
    "training": "Training",
    "averaging": "Averaging",
    "paused": "Paused",
    "stalled": "Stalled",
    "finishing": "Finishing",
    "finished": "Finished",
    "archived": "Archived",
    "unknown": "Unknown",
    "joining": "Joining",
    "syncing": "Fetching the model",
    "silent": "Silent",
    "left": "Left",
    "banned": "Banned",
    "backing_off": "Waiting before a restart",
}

STATE_TONES: Final[dict[str, str]] = {
    "training": "ok",
    "running": "ok",
    "open": "ok",
    "confirmed": "ok",
    "averaging": "warn",
    "finishing": "warn",
    "backing_off": "warn",
    "provisional": "warn",
    "waiting_for_peers": "info",
    "warming_up": "info",
    "joining": "info",
    "syncing": "info",
    "starting": "info",
    "requested": "info",
    "stopping": "info",
    "finished": "info",
    "stalled": "bad",
    "failed": "bad",
    "banned": "bad",
    "rejected": "bad",
}
