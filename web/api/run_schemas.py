"""Bodies about runs that only the site needs."""

from datetime import datetime

from ninja import Schema

from training.protocol.api import BoardRow, RunSummary
from training.protocol.states import RunState


class RunOut(RunSummary):
    """A run, with what its page says of it."""

    description: str
    organiser: str
    is_public: bool
    run_state: RunState
    created_at: datetime
    max_epochs: int | None
    checkpoint_epoch: int | None


class BoardOut(Schema):
    period: str
    items: list[BoardRow]
    next: str | None
    me: BoardRow | None
    num_volunteers: int
    managed_samples: int
    """Of the site's own machines, which are not ranked."""
    total_samples: int


class EventOut(Schema):
    seq: int
    at: datetime
    kind: str
    text: str


class UserLedgerRow(Schema):
    run: str
    epoch: int
    device: str
    samples: int
    state: str
    reason: str
    recorded_at: datetime


class RevocationsOut(Schema):
    seq: int
    made_at: datetime
    peer_ids: list[str]
    jws: str
    """A signed `Revocations`."""
