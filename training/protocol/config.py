"""A run's config: everything that decides what is trained and how the swarm behaves."""

from typing import Literal

from pydantic import Field, JsonValue

from training.protocol.base import (
    MAX_COUNT,
    Epoch,
    FileSize,
    FrozenModel,
    Ordinal,
    Seconds,
    Sha256,
    Slug,
    Tunable,
)
from training.protocol.names import PROTOCOL_VERSION, TRAINER_VERSION, swarm_id


class TaskConfig(FrozenModel):
    """A name from the task registry and that task's parameters (checked by the task itself)."""

    name: str = Field(max_length=60)
    params: dict[str, JsonValue] = Field(default_factory=dict)


class Artifact(FrozenModel):
    """A file that belongs to the config, such as a tokenizer; fetched by its content hash."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,79}$")
    sha256: Sha256
    size: FileSize
    """Bytes."""


class OptimizerConfig(FrozenModel):
    """LAMB and its schedule; the schedule counts global epochs, not local steps."""

    name: Literal["lamb", "sgd"] = "lamb"
    learning_rate: Tunable = 1.76e-3
    warmup_epochs: Epoch = 0
    total_epochs: Ordinal = 1000
    """The learning rate falls linearly to zero at this epoch."""
    min_learning_rate_ratio: float = Field(default=0.0, ge=0, le=1)
    """Floor of the decay, as a share of the peak, so that an overlong run still learns."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: Tunable = 1e-6
    weight_decay: float = Field(default=0.01, ge=0, le=1e6)
    max_grad_norm: Tunable = 1.0


class SwarmConfig(FrozenModel):
    """How peers find each other and average. Raise a timeout when logs name it."""

    target_batch_size: int = Field(default=4096, ge=1, le=MAX_COUNT)
    """Samples of the whole swarm in one epoch."""
    matchmaking_seconds: Seconds = 5.0
    """Time for forming a group; an epoch should last at least 4, better 8 times as long."""
    request_timeout_seconds: Seconds = 2.0
    averaging_timeout_seconds: Seconds = 30.0
    load_state_timeout_seconds: Seconds = 60.0
    average_state_every: Ordinal = 5
    """Epochs between averagings of parameters and optimizer statistics."""
    compression: Literal["none", "float16"] = "float16"
    min_peers: int = Field(default=1, ge=1, le=5000)
    """Below this many trainers the page says that the run waits for peers."""
    admission: Literal["pass", "open"] = "pass"
    """``pass``: every call between peers needs a pass of the site. ``open``: anybody may join,
    such as stock hivemind trainers; for swarms that no stranger can reach."""
    pass_grace_seconds: float = Field(default=3600.0, ge=0, le=30 * 86_400)
    """How long a peer that was admitted stays so without a fresh pass, when the site is away."""
    robust_averaging: Literal["off", "clip"] = "clip"
    """``clip``: what a peer sends to an average is cut to the distance that the others keep."""


class StartPoint(FrozenModel):
    """The saved state that a lineage begins with; without one it begins with a new model."""

    lineage: Ordinal
    epoch: Epoch
    manifest_sha256: Sha256
    """Of the checkpoint's manifest, as its coordinator signed it."""


class CheckpointConfig(FrozenModel):
    every_epochs: Ordinal = 10
    keep: int = Field(default=3, ge=1, le=1000)


class EvaluationConfig(FrozenModel):
    """How saved states are measured; what is measured is the task's own."""

    automatic: bool = False
    """The site evaluates new checkpoints by itself, one at a time, the newest first."""
    samples: int = Field(default=512, ge=1, le=1_000_000)


class ReportConfig(FrozenModel):
    """Rhythms of what is told to whom, in seconds."""

    publish_seconds: Seconds = 2.0
    """Trainer to DHT."""
    metrics_expire_seconds: Seconds = 60.0
    snapshot_seconds: Seconds = 2.0
    """Coordinator to site."""
    heartbeat_seconds: Seconds = 30.0
    """Trainer to site."""


class RunConfig(FrozenModel):
    """One immutable, signed version of a run."""

    protocol_version: Literal[1] = PROTOCOL_VERSION
    run: Slug
    title: str = Field(max_length=120)
    version: Ordinal
    lineage: Ordinal = 1
    start: StartPoint | None = None
    """Where this lineage begins, when the run was rolled back; peers begin anew from there."""
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    max_epochs: Ordinal | None = None
    """The run finishes at this epoch; None: when its organiser says so."""
    min_trainer_version: str = Field(default=TRAINER_VERSION, max_length=40)
    task: TaskConfig
    artifacts: tuple[Artifact, ...] = ()
    optimizer: OptimizerConfig = OptimizerConfig()
    swarm: SwarmConfig = SwarmConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    report: ReportConfig = ReportConfig()
    previous_sha256: Sha256 | None = None
    """Hash of the previous version's signed bytes: versions form a chain."""

    @property
    def swarm_id(self) -> str:
        """hivemind's ``run_id``."""
        return swarm_id(self.run, self.lineage)
