"""What is known of devices in an epoch, and what becomes of it: values of the counting rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from training.protocol.states import CreditState
from web.contributions.grounds import Ground, SuspicionKind

_FOR_ORGANISERS = frozenset({Ground.QUARANTINED, Ground.SUM_TOO_LARGE, Ground.ONE_WORD})


@dataclass(frozen=True)
class Proof:
    """Everything that is known of one device in one epoch."""

    device_id: int
    user_id: int
    peer_id: str
    recorded: int | None = None
    """Its largest progress record, by the coordinator; None: there is none, or nobody watched."""
    reported: int | None = None
    """What the coordinator counted for it; None: it does not name the device."""
    discarded: int = 0
    """Recorded samples that the coordinator reports as thrown away."""
    stated: int | None = None
    """What the device signed; None: it has not named the epoch."""
    is_covered: bool = False
    """Its signed reports cover the epoch, whether or not they name it."""
    group_size: int | None = None
    """Of its averaging round, by its own signed account; None: not told."""
    weights: Mapping[str, int | None] = field(default_factory=dict)
    """What it saw others' parts carry, by peer id."""
    most: int | None = None
    """Samples that it says it computed at all: it cannot have averaged more."""
    is_heard: bool = True
    """A heartbeat came, with the device's token, near the epoch's end or later."""
    barred: str = ""
    """Why the device may not be credited, such as ``this account is suspended``."""
    held: str = ""
    """Why its work waits for an organiser's decision."""
    is_trusted: bool = False
    """An organiser looked into its claims lately, and found them right."""

    @property
    def counted(self) -> int:
        """Samples by the coordinator's word alone."""
        return self.recorded or self.reported or self.discarded


@dataclass(frozen=True)
class Case:
    """An epoch to be judged."""

    proofs: Sequence[Proof]
    accumulated: int | None = None
    """Sum of all progress records, of claimed peers and others."""
    is_overdue: bool = False
    """Evidence that is not here yet is not waited for any longer."""
    is_late: bool = False
    """The report came so late that heartbeats and signed reports of its time may be lost."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of one device's samples of an epoch."""

    device_id: int
    user_id: int
    samples: int
    state: CreditState
    ground: Ground = Ground.PROVEN
    text: str = ""
    claimed: int = 0
    """What the device stated."""
    attested: int = 0
    """Of a claim that one account contradicts: what it saw."""
    num_witnesses: int = 0
    """Accounts of others that saw what its parts carried, or its own when there is no other."""
    suspicion: SuspicionKind | None = None

    @property
    def is_final(self) -> bool:
        """Whether more evidence would change nothing; an organiser still can."""
        return self.state is not CreditState.PROVISIONAL or self.ground in _FOR_ORGANISERS
