"""hivemind's progress record in plain Python, so that counting needs neither torch nor hivemind."""

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
