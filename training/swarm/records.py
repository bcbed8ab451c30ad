"""The swarm's records in plain Python, so that counting needs neither torch nor hivemind."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ProgressRecord:
    """What one peer's own key vouches for: so many samples towards this epoch."""

    key_thumbprint: str
    """Hexadecimal SHA-256 of the RSA public key that owns the record (DER)."""
    peer_id: str
    epoch: int
    samples_accumulated: int
    samples_per_second: float
    client_mode: bool
    reported_at: datetime
    """By the peer's clock: orders the records of one peer, nothing else."""
    received_at: datetime
    """By our clock."""
    left: bool = False
    """The peer took its record back, as it does when it shuts down; the numbers are zero then."""


@dataclass(frozen=True)
class MetricsNumbers:
    """The unsigned numbers of a metrics record, as a stock trainer gives them too."""

    step: int
    """Epoch."""
    samples_per_second: float
    samples_accumulated: int
    loss: float | None
    """Mean per micro-step; None before the first one."""
    mini_steps: int


@dataclass(frozen=True)
class MetricsRecord:
    """One peer's record; the DHT has checked that the key's owner wrote it."""

    public_der: bytes
    thumbprint: str
    numbers: MetricsNumbers
    jws: str
    """Device-signed metrics, not yet verified; empty for a stock trainer."""
    expires_at: float
    """Seconds since 1970."""
