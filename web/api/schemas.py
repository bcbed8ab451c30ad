"""Bodies of the API that only the site needs; what trainers need is in training.protocol.api."""

from datetime import datetime

from ninja import Schema
from pydantic import Field


class MeOut(Schema):
    username: str
    email: str
    is_organiser: bool
    is_profile_public: bool
    country: str
    """ISO 3166-1 code that the person chose; empty for none."""
    created_at: datetime
    scopes: list[str]
    """What the token or session of this call may do."""
    device: str | None
    """Public id of the device that the token is bound to."""
    run: str | None
    """The only run that the token is for."""


class DeviceName(Schema):
    name: str = Field(min_length=1, max_length=80, pattern=r"\S")


class ProfileRun(Schema):
    run: str
    title: str
    samples: int
    epochs: int
    device_hours: float
    last_at: datetime | None


class ProfileOut(Schema):
    username: str
    member_since: datetime
    samples: int
    device_hours: float
    num_devices: int
    runs: list[ProfileRun]


class KeySet(Schema):
    keys: list[dict[str, str]]


class Check(Schema):
    ok: bool
    age: float | None = None
    """Seconds since the last sign of life."""
    detail: str = ""
