"""Base classes of everything the site, the coordinator and the trainers exchange."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

MAX_EPOCH = 2**31 - 1
MAX_COUNT = 10**12
MAX_RATE = 1e12


class FrozenModel(BaseModel):
    """A message we write ourselves: immutable, and unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TolerantModel(BaseModel):
    """A message others wrote: unknown fields are dropped, so that upgrades can roll."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def _require_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    if not 1970 <= value.year < 9999:  # beside these, changing the zone overflows
        raise ValueError("an instant lies between the years 1970 and 9998")
    return value.astimezone(UTC)


Instant = Annotated[datetime, AfterValidator(_require_utc)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$", max_length=60)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Lower-case hexadecimal SHA-256."""
PeerId = Annotated[str, StringConstraints(min_length=1, max_length=120)]
"""libp2p's name of a peer, base58."""
Epoch = Annotated[int, Field(ge=0, le=MAX_EPOCH)]
"""Bounded by the databases' columns: one peer's made-up number must not stop a whole snapshot."""
Ordinal = Annotated[int, Field(ge=1, le=MAX_EPOCH)]
"""What counts from one: versions, lineages, numbers of epochs."""
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""Samples or steps of one peer. So many of 5,000 peers still add up to a number that JSON's readers
keep exactly."""
Total = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""Of a whole swarm: what JSON's readers keep exactly."""
FileSize = Annotated[int, Field(ge=1, le=2**53 - 1)]
"""Bytes."""
Tunable = Annotated[float, Field(gt=0, le=1e6)]
"""A setting of the optimizer."""
Rate = Annotated[float, Field(ge=0, le=MAX_RATE)]
"""Per second."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
"""A rhythm or a patience: above a day it is a mistake, far above it no clock can count it."""
Norm = Annotated[float, Field(ge=0, le=1e39)]
"""Of many numbers: whatever single precision holds."""
Loss = Annotated[float, Field(ge=-1e39, le=1e39)]
"""Whatever single precision holds, also of a model that diverges."""
