"""Base classes of everything the site, the coordinator and the trainers exchange."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints


class FrozenModel(BaseModel):
    """A message we write ourselves: immutable, and unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TolerantModel(BaseModel):
    """A message others wrote: unknown fields are dropped, so that upgrades can roll."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def _require_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return value.astimezone(UTC)


Instant = Annotated[datetime, AfterValidator(_require_utc)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$", max_length=60)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Lower-case hexadecimal SHA-256."""
PeerId = Annotated[str, StringConstraints(min_length=1, max_length=120)]
"""libp2p's name of a peer, base58."""
