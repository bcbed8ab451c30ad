"""Bodies of signed messages that are neither config nor metrics."""

from pydantic import Field

from training.protocol.base import (
    Epoch,
    FileSize,
    FrozenModel,
    Instant,
    Ordinal,
    Sha256,
    Slug,
    Total,
)
from training.protocol.states import CreditState, Role


class PeerPass(FrozenModel):
    """Permission of one peer to be in one swarm; short-lived, signed by the site."""

    sub: str
    """User name."""
    device: str
    """Public id of the device."""
    run: Slug
    lineage: Ordinal
    peer_id: str
    key_thumbprint: Sha256
    """SHA-256 of the peer's hivemind RSA public key (DER, SubjectPublicKeyInfo)."""
    role: Role


class DeviceProof(FrozenModel):
    """What a device signs to show that it holds its key: this challenge, this peer, this run."""

    challenge: str
    run: Slug
    peer_id: str
    key_thumbprint: Sha256
    jwk: dict[str, str]
    """The device's public key (RFC 8037 OKP, Ed25519)."""
    swarm_signature: str
    """Base64 of the hivemind RSA key's signature (PSS, SHA-256) over the challenge."""


class Receipt(FrozenModel):
    """What the site acknowledges to a device for one epoch."""

    run: Slug
    lineage: Ordinal
    epoch: Epoch
    user: str
    device: str
    samples: Total
    state: CreditState
    reason: str = ""


class Revocations(FrozenModel):
    """Peers of a run that nobody in the swarm may deal with any more, whatever pass they show."""

    run: Slug
    seq: Total = 0
    """Grows whenever the list changes: of two lists, the larger number counts."""
    peer_ids: tuple[str, ...]


class CheckpointFile(FrozenModel):
    name: str = Field(pattern=r"^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,79}$")
    sha256: Sha256
    size: FileSize


class CheckpointManifest(FrozenModel):
    """What a coordinator saved; signed with the coordinator's key."""

    run: Slug
    lineage: Ordinal
    config_version: Ordinal
    epoch: Epoch
    saved_at: Instant
    files: tuple[CheckpointFile, ...]
    schema_sha256: Sha256 | None = None
    """Hash of names, shapes and types of the model's tensors; None in old manifests."""
    parameter_norm: float | None = Field(default=None, ge=0, le=1e15)
    """Norm over all trainable parameters."""


class KeyVouch(FrozenModel):
    """A site key's word for the site's next key: the JWK's member ``vouched_by``."""

    jwk: dict[str, str]
    """The new public key, without ``vouched_by``."""
