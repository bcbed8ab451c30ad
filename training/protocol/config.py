"""A run's config: everything that decides what is trained and how the swarm behaves.

The text below each field is what its organiser reads beside it: what it does, in which unit, and
what is sensible.
"""

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

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


class ConfigModel(FrozenModel):
    """A part of a config, whose fields explain themselves."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class TaskConfig(ConfigModel):
    """A name from the task registry and that task's parameters (checked by the task itself)."""

    name: str = Field(max_length=60)
    """What is trained: a name from the task registry of the trainers."""
    params: dict[str, JsonValue] = Field(default_factory=dict)
    """Sizes of the model and where its data comes from, as the task defines them. Another value
    makes another model: a new lineage."""


class Artifact(ConfigModel):
    """A file that belongs to the config, such as a tokenizer; fetched by its content hash."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,79}$")
    """What the task calls the file."""
    sha256: Sha256
    """Hash of its content; trainers refuse a file with another one."""
    size: FileSize
    """Bytes."""


class OptimizerConfig(ConfigModel):
    """LAMB and its schedule; the schedule counts global epochs, not local steps."""

    name: Literal["lamb", "sgd"] = "lamb"
    """LAMB adapts the step of each layer and stands large batches; plain SGD is for tests."""
    learning_rate: Tunable = 1.76e-3
    """Peak of the schedule, in a step of the whole swarm. Sensible with LAMB: 0.0005 to 0.02;
    larger for larger batches."""
    warmup_epochs: Epoch = 0
    """Epochs in which the learning rate grows to its peak. Sensible: 1 to 5 % of all epochs."""
    total_epochs: Ordinal = 1000
    """The learning rate falls linearly to zero at this epoch. Sensible: the number of epochs
    that you mean to train."""
    min_learning_rate_ratio: float = Field(default=0.0, ge=0, le=1)
    """Floor of the decay, as a share of the peak, so that an overlong run still learns.
    Sensible: 0 to 0.1."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Memory of LAMB for gradients. Sensible: 0.9."""
    beta2: float = Field(default=0.999, ge=0, lt=1)
    """Memory of LAMB for squared gradients. Sensible: 0.98 to 0.999."""
    epsilon: Tunable = 1e-6
    """Keeps LAMB from dividing by zero. Sensible: 0.000001 to 0.00000001."""
    weight_decay: float = Field(default=0.01, ge=0, le=1e6)
    """Pull of weights towards zero; biases and normalisation are spared. Sensible: 0 to 0.1."""
    max_grad_norm: Tunable = 1.0
    """Gradients are shortened to this length before a step. Sensible: 0.5 to 5."""


class SwarmConfig(ConfigModel):
    """How peers find each other and average. Raise a timeout when logs name it."""

    target_batch_size: int = Field(default=4096, ge=1, le=MAX_COUNT)
    """Samples of the whole swarm in one epoch. Sensible: what the fleet computes in 15 seconds to
    5 minutes; paper-sized runs take 4,096 to 65,536."""
    matchmaking_seconds: Seconds = 5.0
    """Seconds for forming a group; an epoch should last at least 4, better 8 times as long.
    Sensible: 3 to 15."""
    request_timeout_seconds: Seconds = 2.0
    """Seconds that one question to a peer may take while a group forms. Sensible: 1 to 5, and
    below the time for matchmaking."""
    averaging_timeout_seconds: Seconds = 30.0
    """Seconds after which an averaging round is given up. Sensible: twice as long as the model
    takes over the slowest line, 20 to 300."""
    load_state_timeout_seconds: Seconds = 60.0
    """Seconds in which a newcomer has to have fetched the model from another peer. Sensible: 60 to
    600."""
    average_state_every: Ordinal = 5
    """Epochs between averagings of parameters and optimizer statistics. Sensible: 1 to 10."""
    compression: Literal["none", "float16"] = "float16"
    """How numbers travel between peers: float16 halves the traffic and costs no quality to speak
    of."""
    min_peers: int = Field(default=1, ge=1, le=5000)
    """Below this many trainers the page says that the run waits for peers. Sensible: what you
    need for an epoch in good time."""
    admission: Literal["pass", "open"] = "pass"
    """``pass``: every call between peers needs a pass of the site. ``open``: anybody may join,
    such as stock hivemind trainers; for swarms that no stranger can reach."""
    pass_grace_seconds: float = Field(default=3600.0, ge=0, le=30 * 86_400)
    """Seconds that a peer that was admitted stays so without a fresh pass, when the site is away.
    Sensible: 600 to 86,400."""
    robust_averaging: Literal["off", "clip"] = "clip"
    """``clip``: what a peer sends to an average is cut to the distance that the others keep.
    ``off``: only what is not a number is left out."""


class StartPoint(ConfigModel):
    """The saved state that a lineage begins with; without one it begins with a new model."""

    lineage: Ordinal
    epoch: Epoch
    manifest_sha256: Sha256
    """Of the checkpoint's manifest, as its coordinator signed it."""


class CheckpointConfig(ConfigModel):
    """When the coordinator saves the state of the swarm."""

    every_epochs: Ordinal = 10
    """Epochs between saved states. Sensible: one every 5 to 60 minutes."""
    keep: int = Field(default=3, ge=1, le=1000)
    """How many of the newest saved states are kept; each holds the model and the optimizer's
    statistics. Sensible: 3 to 20."""


class EvaluationConfig(ConfigModel):
    """How saved states are measured; what is measured is the task's own."""

    automatic: bool = False
    """The site evaluates new checkpoints by itself, one at a time, the newest first."""
    samples: int = Field(default=512, ge=1, le=1_000_000)
    """Held-out samples that one evaluation computes. Sensible: 256 to 10,000."""


class ReportConfig(ConfigModel):
    """Rhythms of what is told to whom, in seconds."""

    publish_seconds: Seconds = 2.0
    """Seconds between a trainer's reports to the swarm. Sensible: 1 to 10; longer for hundreds of
    peers."""
    metrics_expire_seconds: Seconds = 60.0
    """Seconds for which such a report is valid. Sensible: 10 times the rhythm of reports."""
    snapshot_seconds: Seconds = 2.0
    """Seconds between the coordinator's reports to the site. Sensible: 1 to 10."""
    heartbeat_seconds: Seconds = 30.0
    """Seconds between a trainer's heartbeats to the site: pauses, new configs and revocations
    reach trainers with them. Sensible: 10 to 60."""


class RunConfig(ConfigModel):
    """One immutable, signed version of a run."""

    protocol_version: Literal[1] = PROTOCOL_VERSION
    run: Slug
    title: str = Field(max_length=120)
    """Name of the run on its page. At most 120 characters."""
    version: Ordinal
    lineage: Ordinal = 1
    start: StartPoint | None = None
    """Where this lineage begins, when the run was rolled back; peers begin anew from there."""
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    """Where random numbers start: with the same one every peer builds the same untrained model."""
    max_epochs: Ordinal | None = None
    """The run finishes at this epoch. Empty: when its organiser says so."""
    min_trainer_version: str = Field(default=TRAINER_VERSION, max_length=40)
    """Trainers older than this are told to upgrade and cannot join."""
    task: TaskConfig
    artifacts: tuple[Artifact, ...] = ()
    """Files that the task needs, such as a tokenizer; trainers fetch them by content hash."""
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
