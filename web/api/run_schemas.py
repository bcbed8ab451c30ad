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
    join_policy: str
    """``open``, or ``approval``: new people ask on the page Join first."""
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


class MarkOut(Schema):
    at: datetime
    kind: str
    """config, rollback, incident, state or checkpoint"""
    text: str
    lineage: int | None
    epoch: int | None


class MarksOut(Schema):
    items: list[MarkOut]


class PastPeerOut(Schema):
    name: str
    state: str
    epoch: int
    samples_per_second: float
    hardware: str


class SwarmOut(Schema):
    """The swarm at one time."""

    at: datetime
    state: str
    reason: str
    lineage: int
    epoch: int
    loss: float | None
    samples_per_second: float
    samples_total: int
    num_peers: int
    counts: dict[str, int]
    classes: dict[str, float]
    peers: list[PastPeerOut]
    num_more: int
    before: datetime | None
    after: datetime | None
