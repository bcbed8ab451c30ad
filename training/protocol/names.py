"""Names that both sides must spell the same way."""

from typing import Final

PROTOCOL_VERSION: Final = 1
TRAINER_VERSION = "0.1.0"
"""Version of this package; the site refuses trainers older than a run's config asks for."""

API_PREFIX = "/api/v1"

JWS_ALGORITHM = "Ed25519"

TYP_CONFIG = "beeyard-config+jws"
TYP_PASS = "beeyard-pass+jws"
TYP_METRICS = "beeyard-metrics+jws"
TYP_SNAPSHOT = "beeyard-snapshot+jws"
TYP_RECEIPT = "beeyard-receipt+jws"
TYP_REVOCATIONS = "beeyard-revocations+jws"
TYP_PROOF = "beeyard-proof+jws"
"""A device's answer to a join challenge."""
TYP_CHECKPOINT = "beeyard-checkpoint+jws"
"""A coordinator's manifest of one checkpoint."""
TYP_KEY = "beeyard-key+jws"
"""A trusted site key's word for a new one."""

OAUTH_CLIENT_ID = "beeyard-trainer"
OAUTH_SCOPES = "openid profile"
DEVICE_CODE_PATH = "/identity/o/api/device/code"
TOKEN_PATH = "/identity/o/api/token"
REVOKE_PATH = "/identity/o/api/revoke"

ENV_TOKEN = "BEEYARD_TOKEN"
ENV_HOME = "BEEYARD_HOME"
"""Folder of a volunteer's keys and logins (default: ~/.beeyard)."""
ENV_DATA = "BEEYARD_DATA"
ENV_PROCESS = "BEEYARD_PROCESS"
"""Set for every process that an installation started itself, so that stragglers can be found."""


def swarm_id(slug: str, lineage: int) -> str:
    """Return hivemind's ``run_id``; a new lineage keeps incompatible peers apart."""
    return f"{slug}-{lineage}"


def progress_key(run_id: str) -> str:
    """Return hivemind's own DHT key of training progress records."""
    return f"{run_id}_progress"


def metrics_key(run_id: str) -> str:
    """Return the DHT key under which each peer keeps its device-signed metrics."""
    return f"{run_id}_metrics"


def members_key(run_id: str) -> str:
    """Return the DHT key under which each member keeps its pass."""
    return f"{run_id}_members"


def revocations_key(run_id: str) -> str:
    """Return the DHT key under which coordinators keep the site's list of revoked peers."""
    return f"{run_id}_revocations"


def admission_protocol(run_id: str) -> str:
    """Return the libp2p protocol at which a peer tells a caller whether it would let it in."""
    return f"/beeyard/{run_id}/admission/1"
