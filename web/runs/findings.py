"""What a check of a config found, and what it was told of the fleet. Values only."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from training.protocol.config import RunConfig
from training.protocol.states import RunState
from web.runs.model_size import ModelSize


class Severity(StrEnum):
    ERROR = "error"
    """Nothing is published."""
    WARNING = "warning"
    """Published when somebody says that they know."""
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """``path`` names the field that the remedy is about."""

    code: str
    severity: Severity
    sentence: str
    remedy: str = ""
    path: str = ""


@dataclass(frozen=True)
class Fleet:
    """Today's machines: of the run, or of the whole site while the run has none."""

    num_trainers: int = 0
    """In the swarm now."""
    samples_per_second: float = 0.0
    """Of the swarm now; 0: not known."""
    num_devices: int = 0
    """Seen in the last day."""
    memory_bytes: tuple[int, ...] = ()
    """Of each of these that says so: of its graphics card, or of the machine without one."""
    num_outdated: int = 0
    """Of these: have a trainer that the config calls too old."""
    is_of_run: bool = True
    num_site_trainers: int = 0
    """In the swarms of the site's public runs now; counted while the run has no machine itself."""
    site_samples_per_second: float = 0.0
    """What these would compute of the config's samples together; 0: not known."""


@dataclass(frozen=True)
class Dialled:
    """A bootstrap address, tried just now."""

    address: str
    is_reached: bool
    text: str = ""


@dataclass(frozen=True)
class Situation:
    """Everything beside the config that the check looks at."""

    now: datetime
    state: RunState = RunState.DRAFT
    epoch: int = 0
    previous: RunConfig | None = None
    fleet: Fleet = field(default_factory=Fleet)
    dialled: tuple[Dialled, ...] = ()
    tasks: frozenset[str] = frozenset()
    """Names of the tasks that a config may name."""
    size: ModelSize | None = None
    previous_size: ModelSize | None = None
    lifetime_days: float = 90.0
    """For how long a signature is valid."""
    expires_at: datetime | None = None
    """Of the signature in force."""
