"""A run's config: everything that decides what is trained and how the swarm behaves."""

from typing import Literal

from pydantic import Field, JsonValue, NonNegativeFloat, PositiveFloat, PositiveInt

from training.protocol.base import FrozenModel, Sha256, Slug
from training.protocol.names import PROTOCOL_VERSION, TRAINER_VERSION, swarm_id


class TaskConfig(FrozenModel):
    """A name from the task registry and that task's parameters (checked by the task itself)."""

    name: str = Field(max_length=60)
    params: dict[str, JsonValue] = Field(default_factory=dict)


class Artifact(FrozenModel):
    """A file that belongs to the config, such as a tokenizer; fetched by its content hash."""

    name: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,80}$")
    sha256: Sha256
    size: PositiveInt
    """Bytes."""


class OptimizerConfig(FrozenModel):
    """LAMB and its schedule; the schedule counts global epochs, not local steps."""

    name: Literal["lamb", "sgd"] = "lamb"
    learning_rate: PositiveFloat = 1.76e-3
    warmup_epochs: int = Field(default=0, ge=0)
    total_epochs: PositiveInt = 1000
    """The learning rate falls linearly to zero at this epoch."""
    min_learning_rate_ratio: float = Field(default=0.0, ge=0, le=1)
    """Floor of the decay, as a share of the peak, so that an overlong run still learns."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: PositiveFloat = 1e-6
    weight_decay: float = Field(default=0.01, ge=0)
    max_grad_norm: PositiveFloat = 1.0


class SwarmConfig(FrozenModel):
    """How peers find each other and average. Raise a timeout when logs name it."""

    target_batch_size: PositiveInt = 4096
    """Samples of the whole swarm in one epoch."""
    matchmaking_seconds: PositiveFloat = 5.0
    """Time for forming a group; an epoch should last at least 4, better 8 times as long."""
    request_timeout_seconds: PositiveFloat = 2.0
    averaging_timeout_seconds: PositiveFloat = 30.0
    load_state_timeout_seconds: PositiveFloat = 60.0
    average_state_every: PositiveInt = 5
    """Epochs between averagings of parameters and optimizer statistics."""
    compression: Literal["none", "float16"] = "float16"
    min_peers: PositiveInt = 1
    """Below this many trainers the page says that the run waits for peers."""
    admission: Literal["pass", "open"] = "pass"
    """``pass``: every call between peers needs a pass of the site. ``open``: anybody may join,
    such as stock hivemind trainers; for swarms that no stranger can reach."""
    pass_grace_seconds: NonNegativeFloat = 3600.0
    """How long a peer that was admitted stays so without a fresh pass, when the site is away."""
    robust_averaging: Literal["off", "clip"] = "clip"
    """``clip``: what a peer sends to an average is cut to the distance that the others keep."""


class StartPoint(FrozenModel):
    """The saved state that a lineage begins with; without one it begins with a new model."""

    lineage: PositiveInt
    epoch: int = Field(ge=0)
    manifest_sha256: Sha256
    """Of the checkpoint's manifest, as its coordinator signed it."""


class CheckpointConfig(FrozenModel):
    every_epochs: PositiveInt = 10
    keep: PositiveInt = 3


class ReportConfig(FrozenModel):
    """Rhythms of what is told to whom, in seconds."""

    publish_seconds: PositiveFloat = 2.0
    """Trainer to DHT."""
    metrics_expire_seconds: PositiveFloat = 60.0
    snapshot_seconds: PositiveFloat = 2.0
    """Coordinator to site."""
    heartbeat_seconds: PositiveFloat = 30.0
    """Trainer to site."""


class RunConfig(FrozenModel):
    """One immutable, signed version of a run."""

    protocol_version: Literal[1] = PROTOCOL_VERSION
    run: Slug
    title: str = Field(max_length=120)
    version: PositiveInt
    lineage: PositiveInt = 1
    start: StartPoint | None = None
    """Where this lineage begins, when the run was rolled back; peers begin anew from there."""
    seed: int = 0
    max_epochs: PositiveInt | None = None
    """The run finishes at this epoch; None: when its organiser says so."""
    min_trainer_version: str = TRAINER_VERSION
    task: TaskConfig
    artifacts: tuple[Artifact, ...] = ()
    optimizer: OptimizerConfig = OptimizerConfig()
    swarm: SwarmConfig = SwarmConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    report: ReportConfig = ReportConfig()
    previous_sha256: Sha256 | None = None
    """Hash of the previous version's signed bytes: versions form a chain."""

    @property
    def swarm_id(self) -> str:
        """hivemind's ``run_id``."""
        return swarm_id(self.run, self.lineage)
