"""Bodies of the HTTP API and of the websocket."""

from typing import Any, Literal

from pydantic import (
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from training.protocol.base import Count, Epoch, FrozenModel, Instant, Sha256, Slug, TolerantModel
from training.protocol.claims import CheckpointFile
from training.protocol.metrics import Hardware
from training.protocol.states import (
    Command,
    CreditState,
    LiveState,
    PeerState,
    Reach,
    Role,
    RunState,
)


class Challenge(TolerantModel):
    challenge: str
    expires_at: Instant


class JoinRequest(FrozenModel):
    peer_id: str = Field(min_length=10, max_length=120)
    swarm_public_key: str = Field(max_length=2048)
    """The hivemind RSA public key, DER SubjectPublicKeyInfo, base64."""
    device_proof: str = Field(max_length=8192)
    hardware: Hardware = Hardware()
    trainer_version: str = Field(max_length=40)
    role: Role = Role.TRAINER
    device_name: str = Field(default="", max_length=80)


class JoinResponse(TolerantModel):
    device_id: str
    device_name: str
    username: str
    config: str
    """JWS of the run config."""
    peer_pass: str = Field(alias="pass")
    bootstrap_peers: tuple[str, ...]
    min_epoch: NonNegativeInt = 0
    """Epoch of the newest checkpoint: a swarm that is behind it is the wrong swarm."""
    checkpoint: str = ""
    """JWS of the newest :class:`CheckpointManifest` of this lineage; empty before the first."""

    model_config = {"populate_by_name": True, "frozen": True, "extra": "ignore"}


class PassRequest(FrozenModel):
    """The heartbeat."""

    epoch: Epoch = 0
    samples: Count = 0
    """Computed since the process started."""
    state: PeerState = PeerState.TRAINING
    trainer_version: str = Field(default="", max_length=40)
    message_seen: int = Field(default=0, ge=0, le=2**53 - 1)
    """Number of the newest message that was shown to the person; 0: none, and left out."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``message_seen`` out while it is 0: sites before it refuse unknown fields."""
        body: dict[str, Any] = handler(self)
        if not self.message_seen:
            body.pop("message_seen", None)
        return body


class PeerNote(TolerantModel):
    """What a moderator of the run wrote to the person behind this peer."""

    id: PositiveInt
    """Grows with each message to this peer."""
    text: str = Field(max_length=500)
    """One paragraph of plain text. Whoever shows it leaves out what a terminal would obey."""
    sender: str = Field(default="", max_length=150)
    sent_at: Instant


class PassResponse(TolerantModel):
    peer_pass: str = Field(alias="pass")
    commands: tuple[Command, ...] = ()
    messages: tuple[PeerNote, ...] = ()
    """Not known to be shown yet; said again until ``message_seen`` names them."""
    config_version: PositiveInt
    bootstrap_peers: tuple[str, ...] = ()
    revocations: str = ""
    """JWS of the run's current :class:`Revocations`; empty from a site that has none."""

    model_config = {"populate_by_name": True, "frozen": True, "extra": "ignore"}


class SnapshotRequest(FrozenModel):
    snapshot: str = Field(max_length=8_000_000)
    """JWS of a :class:`SwarmSnapshot`."""


class SnapshotResponse(TolerantModel):
    accepted: bool
    """False when a snapshot with this number or a newer one was known already."""
    last_seq: NonNegativeInt
    last_epoch: NonNegativeInt | None = None
    """Newest finished epoch in the ledger: reports up to it need not be sent again."""
    state: RunState = RunState.OPEN
    config_version: PositiveInt = 1
    revocations: str = ""
    """JWS of the run's current :class:`Revocations`, for the coordinator to spread."""


class CheckpointRequest(FrozenModel):
    manifest: str = Field(max_length=65_536)
    """JWS of a :class:`CheckpointManifest`."""


class CheckpointOut(TolerantModel):
    epoch: NonNegativeInt
    lineage: PositiveInt
    config_version: PositiveInt
    saved_at: Instant
    files: tuple[CheckpointFile, ...]
    manifest: str


class LivePeer(TolerantModel):
    """One row of the peers table."""

    name: str
    """The volunteer's public name, or a label for peers that no account claims."""
    device: str = ""
    role: Role = Role.TRAINER
    managed: bool = False
    verified: bool = False
    """Whether the numbers carry the signature of a device of an account."""
    state: PeerState
    reach: Reach
    hardware: str = ""
    version: str = ""
    epoch: NonNegativeInt
    samples_accumulated: NonNegativeInt
    samples_per_second: NonNegativeFloat
    loss: float | None = None
    seen_at: Instant


class LiveRun(TolerantModel):
    """The live state of a run: the body of ``state/`` and of a websocket snapshot."""

    run: Slug
    title: str
    seq: NonNegativeInt
    as_of: Instant | None
    """When the coordinator took the newest snapshot; None before the first."""
    state: LiveState
    reason: str
    """The state in words, with its evidence."""
    run_state: RunState
    config_version: NonNegativeInt
    epoch: NonNegativeInt
    epoch_started_at: Instant | None = None
    target_batch_size: PositiveInt
    samples_accumulated: NonNegativeInt
    samples_total: NonNegativeInt
    """Samples of all finished epochs that were reported."""
    samples_pending: NonNegativeInt = 0
    """Of epochs that ended and are not reported yet, as far as they were seen."""
    samples_per_second: NonNegativeFloat
    loss: float | None = None
    """The last one that was measured."""
    loss_at: Instant | None = None
    """When the swarm said that loss; ``as_of`` goes on without one."""
    first_loss: float | None = None
    num_peers: NonNegativeInt
    """Trainers that were seen lately."""
    min_peers: PositiveInt = 1
    checkpoint_epoch: NonNegativeInt | None = None
    run_text: str = ""
    """The organiser's last move in words, such as ``paused by alice: disk full``."""
    changed_at: Instant | None = None
    """When that was."""
    heard_at: Instant | None = None
    """When the newest snapshot arrived, by the site's clock."""
    max_epochs: PositiveInt | None = None
    """The run is done after so many; None: it has no fixed end."""
    pace_low: NonNegativeFloat | None = None
    """Samples per second of a slow and of a fast one of the last epochs, averaging included."""
    pace_high: NonNegativeFloat | None = None
    peers: dict[str, LivePeer] = Field(default_factory=dict)
    """By a public id that tells nothing of the peer's address."""


class RunSummary(TolerantModel):
    slug: Slug
    title: str
    summary: str
    task: str
    state: LiveState
    reason: str
    config_version: NonNegativeInt
    target_batch_size: PositiveInt
    epoch: NonNegativeInt
    num_peers: NonNegativeInt
    samples_total: NonNegativeInt
    samples_per_second: NonNegativeFloat
    loss: float | None
    as_of: Instant | None


class ConfigOut(TolerantModel):
    version: PositiveInt
    jws: str
    sha256: Sha256
    config: dict[str, JsonValue]
    diff: list[dict[str, JsonValue]]
    """Changed fields against the previous version: ``{"path", "old", "new"}``."""
    published_at: Instant


class BoardRow(TolerantModel):
    rank: PositiveInt
    user: str
    samples: NonNegativeInt
    share: float
    device_hours: NonNegativeFloat
    last_seen: Instant | None


class LedgerRow(TolerantModel):
    epoch: NonNegativeInt
    user: str
    device: str
    samples: int
    """Negative in a correction that takes samples away."""
    state: CreditState
    reason: str
    recorded_at: Instant


class ReceiptOut(TolerantModel):
    epoch: NonNegativeInt
    samples: NonNegativeInt
    state: CreditState
    reason: str
    code: str = ""
    jws: str


class WhyLink(TolerantModel):
    """One link of the chain from heartbeat to ledger."""

    code: str
    ok: bool | None
    """None: not decided yet."""
    text: str
    remedy: str = ""


class WhyOut(TolerantModel):
    """Why work was or was not counted: the links in order; the first broken one matters."""

    links: tuple[WhyLink, ...]


class DeviceOut(TolerantModel):
    id: str
    name: str
    hardware: Hardware
    trainer_version: str
    last_seen: Instant | None
    created_at: Instant
    revoked: bool
    runs: list[str]


class LiveMessage(TolerantModel):
    """A frame of the websocket; other members depend on ``type``."""

    type: Literal["run.snapshot", "run.patch", "run.event", "run.bye"]
    seq: NonNegativeInt
    as_of: Instant | None = None
