"""The only home of hivemind: identity, DHT, averaging."""

import os

# hivemind takes one shared-memory file per this many futures; its default of 16 is slow.
os.environ.setdefault("HIVEMIND_SHM_BUFFER_SIZE", "1024")
# Its log goes where `swarm_log_to` says; until then only what would end the process is told.
os.environ.setdefault("HIVEMIND_LOGLEVEL", "CRITICAL")
