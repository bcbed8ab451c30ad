"""What peers say of themselves and what a coordinator saw."""

from typing import Annotated, NamedTuple

from pydantic import Field

from training.protocol.base import (
    MAX_RATE,
    Count,
    Epoch,
    FrozenModel,
    Instant,
    Loss,
    Ordinal,
    PeerId,
    Rate,
    Sha256,
    Slug,
    TolerantModel,
    Total,
)
from training.protocol.states import PeerState, Reach, Role


class Hardware(TolerantModel):
    """A machine, as coarse as is useful: it is shown on public pages."""

    device: str = Field(default="cpu", max_length=80)
    """Such as ``cpu`` or ``NVIDIA T4``."""
    cpus: Count = 0
    memory_bytes: Total = 0
    gpu_memory_bytes: Total = 0
    system: str = Field(default="", max_length=40)


class EpochSamples(TolerantModel):
    """Samples of this peer that entered the average which ended ``epoch``."""

    epoch: Epoch
    samples: Count


MAX_RECENT = 32
"""Epochs in one report; a full one says nothing of those before its oldest."""
MAX_ROUNDS = 16
MAX_ROUND_ROWS = 48
"""Members of all rounds in one report, which keeps it below a third of a record's limit."""
MAX_ROUND_MEMBERS = 12
"""Of a larger group a report names only so many (``training.protocol.rounds``)."""


class RoundSeen(TolerantModel):
    """What one peer saw of the averaging round in which it ended ``epoch``."""

    epoch: Epoch
    group_size: int = Field(ge=1, le=1_000_000)
    """Peers in the round, this one included."""
    weights: dict[PeerId, Count | None] = Field(default_factory=dict, max_length=MAX_ROUND_MEMBERS)
    """Other members by peer id: the samples that their parts carried when this peer averaged
    them; None: the member sent it no part (as to a peer in client mode)."""

    @property
    def is_whole(self) -> bool:
        """Whether every other member is named."""
        return len(self.weights) >= self.group_size - 1


MAX_TIMINGS = 8
SpentSeconds = Annotated[float, Field(ge=0, le=86_400)]


class EpochTiming(NamedTuple):
    """How one trainer spent the time from the end of the epoch before to the end of ``epoch``, in
    seconds on its own clock; a pause by the organiser is not in it. A list in JSON: a report has
    to stay short."""

    epoch: Epoch
    computing: SpentSeconds
    """In forward and backward passes."""
    matchmaking: SpentSeconds
    """Waiting for a group while nothing was computed; looking for one beside computing is free."""
    averaging: SpentSeconds
    """Exchanging gradients with the group."""
    waiting: SpentSeconds
    """All the rest: the optimizer's step, loading data and state, averaging of weights."""
    group_size: Annotated[int, Field(ge=0, le=1_000_000)]
    """Peers in the round, this one included; 0: its round failed while others averaged."""

    @property
    def averaged(self) -> bool:
        """Whether the epoch ended as planned: in a group, or alone because nobody was there."""
        return self.group_size > 0


class PeerMetrics(TolerantModel):
    """A trainer's report, signed with its device key; travels in the DHT and in snapshots."""

    run: Slug
    lineage: Ordinal
    peer_id: str = Field(max_length=120)
    role: Role = Role.TRAINER
    state: PeerState = PeerState.TRAINING
    config_version: Ordinal
    epoch: Epoch
    samples_accumulated: Count
    """In the current epoch."""
    samples_total: Count
    """Computed since this process started, whether or not they were averaged."""
    samples_per_second: Rate
    loss: Loss | None = None
    """Mean training loss per sample over the last finished epoch or, before one, so far."""
    mini_steps: Count = 0
    learning_rate: Rate = 0.0
    recent: tuple[EpochSamples, ...] = Field(default=(), max_length=MAX_RECENT)
    """The last finished epochs, so that a coordinator that was away can catch up."""
    rounds: tuple[RoundSeen, ...] = Field(default=(), max_length=MAX_ROUNDS)
    """What the averaging rounds of the last of these epochs showed of other peers."""
    timings: tuple[EpochTiming, ...] = Field(default=(), max_length=MAX_TIMINGS)
    """How the time of the last of these epochs was spent; trainers of old do not say."""
    trainer_version: str = Field(default="", max_length=40)
    client_mode: bool = False
    revocations_seq: Total = 0
    """Number of the revocation list that this peer applies."""
    taken_at: Instant

    def covers(self, epoch: int) -> bool:
        """Whether it would name a finished epoch in which the peer had taken part."""
        is_full = len(self.recent) >= MAX_RECENT
        oldest = min(item.epoch for item in self.recent) if is_full else 0
        return oldest <= epoch < self.epoch


class PeerObservation(TolerantModel):
    """One peer as the coordinator saw it. ``jws`` is the proof; the numbers are a stock peer's."""

    key_thumbprint: Sha256
    """SHA-256 of the RSA public key that owns the peer's DHT records."""
    peer_id: str = Field(default="", max_length=120)
    seen_at: Instant
    """When the coordinator last received a record of this peer."""
    reach: Reach = Reach.UNKNOWN
    epoch: Epoch = 0
    samples_accumulated: Count = 0
    samples_per_second: Rate = 0.0
    loss: Loss | None = None
    jws: str = Field(default="", max_length=16_384)
    """Device-signed :class:`PeerMetrics`, or empty for a stock hivemind trainer."""


class EpochWork(TolerantModel):
    """Samples of one peer that counted in one finished epoch."""

    key_thumbprint: Sha256
    samples: Count
    recorded: Count | None = None
    """Largest progress record that the peer pushed; None: the coordinator was not there."""


class EpochReport(TolerantModel):
    """An epoch that ended, and who took part. Sent again until the site has acknowledged it."""

    epoch: Epoch
    finished_at: Instant
    loss: Loss | None = None
    num_peers: int = Field(default=0, ge=0, le=1_000_000)
    work: tuple[EpochWork, ...] = ()
    discarded: tuple[EpochWork, ...] = ()
    """Recorded samples that did not enter the average: the peer took over the swarm's state."""
    accumulated: Total | None = None
    """Sum of all peers' largest records: no more can have been averaged. None: not known."""


class SwarmSnapshot(FrozenModel):
    """What the coordinator saw at one time, numbered, signed with the coordinator's key."""

    run: Slug
    lineage: Ordinal
    seq: int = Field(ge=1, le=2**53 - 1)
    """Grows by one with each snapshot of this coordinator, also over restarts."""
    taken_at: Instant
    epoch: Epoch
    samples_accumulated: Total
    """Of the whole swarm, in the current epoch."""
    samples_per_second: float = Field(ge=0, le=MAX_RATE * 10_000)
    loss: Loss | None = None
    peers: tuple[PeerObservation, ...] = Field(default=(), max_length=5000)
    finished_epochs: tuple[EpochReport, ...] = Field(default=(), max_length=1000)
    bootstrap_peers: tuple[str, ...] = Field(default=(), max_length=64)
    """Multiaddresses at which the swarm can be entered now; never public."""
    coordinator_version: str = ""
