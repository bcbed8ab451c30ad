"""What the evidence says of a swarm and of its peers, in words. Pure: ages are arguments."""

from collections.abc import Iterable
from dataclasses import dataclass

from training.protocol.states import LiveState, PeerState, RunState

COORDINATOR_SILENT_SECONDS = 20.0
"""Snapshots come every 2 s by default; raise it when slow links make runs look unknown."""
FIRST_REPORT_SECONDS = 120.0
"""A run that was just opened waits this long for its coordinator before it is unknown."""
PEER_SILENT_SECONDS = 45.0
"""Trainers publish every 2 s; an averaging round may hold them up for half a minute."""
PEER_LEFT_SECONDS = 120.0
PEER_FORGOTTEN_SECONDS = 600.0
"""Rows of peers that left stay in the table for this long."""
STALL_SECONDS = 300.0
"""No epoch is called overdue before this."""
STALL_FACTOR = 4.0
"""An epoch that takes this many times as long as the speed promises is overdue."""

GONE = frozenset({PeerState.SILENT, PeerState.LEFT, PeerState.BANNED})
_LOADING = frozenset({PeerState.JOINING, PeerState.SYNCING})


@dataclass(frozen=True)
class SwarmEvidence:
    """Everything that the state of a run is derived from."""

    run_state: RunState
    run_text: str = ""
    """The organiser's last move in words, such as ``paused by alice: disk full``."""
    has_config: bool = True
    changed_seconds: float = 0.0
    """Since the organiser's last move."""
    heard_seconds: float | None = None
    """Since the coordinator's newest snapshot; None: there is none."""
    epoch: int = 0
    epoch_seconds: float | None = None
    """Since the current epoch began."""
    has_finished_epoch: bool = False
    peers: tuple[PeerState, ...] = ()
    """Of the trainers."""
    min_peers: int = 1
    samples_accumulated: int = 0
    target_batch_size: int = 1
    samples_per_second: float = 0.0

    @property
    def num_peers(self) -> int:
        return sum(state not in GONE for state in self.peers)


def peer_state(claimed: PeerState, age_seconds: float, *, is_barred: bool = False) -> PeerState:
    """Return the state of a peer that said ``claimed`` when it was last seen.

    ``age_seconds`` counts up to the newest snapshot, not up to now: when the coordinator is
    silent, nothing is known of the peers, and that is not their fault.
    """
    if is_barred:
        return PeerState.BANNED
    if claimed is PeerState.LEFT or age_seconds > PEER_LEFT_SECONDS:
        return PeerState.LEFT
    if claimed is PeerState.SILENT or age_seconds > PEER_SILENT_SECONDS:
        return PeerState.SILENT
    return claimed


def swarm_state(evidence: SwarmEvidence) -> tuple[LiveState, str]:
    """Return the state and the sentence that gives its evidence."""
    settled = _settled(evidence)
    if settled is not None:
        return settled
    silence = evidence.heard_seconds
    if silence is None:
        return _before_first_report(evidence)
    if silence > COORDINATOR_SILENT_SECONDS:
        return LiveState.UNKNOWN, f"unknown: the coordinator was last heard {age(silence)} ago"
    if evidence.num_peers < evidence.min_peers:
        return (
            LiveState.WAITING_FOR_PEERS,
            f"waiting for peers ({evidence.num_peers} of {evidence.min_peers})",
        )
    return _at_work(evidence)


def stall_seconds(target_batch_size: int, samples_per_second: float) -> float:
    """Return after how many seconds an epoch is overdue."""
    if samples_per_second <= 0:
        return STALL_SECONDS
    return max(STALL_SECONDS, STALL_FACTOR * target_batch_size / samples_per_second)


def age(seconds: float) -> str:
    """Return a duration in one coarse unit, so that sentences change seldom."""
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.0f} s"
    if seconds < 120:
        return f"{seconds // 10 * 10:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds // 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds // 3600:.0f} h"
    return f"{seconds // 86400:.0f} days"


def _settled(evidence: SwarmEvidence) -> tuple[LiveState, str] | None:
    """States that the organiser decided, whatever the swarm does."""
    text = evidence.run_text
    match evidence.run_state:
        case RunState.DRAFT:
            missing = "" if evidence.has_config else ", and no config is published"
            return LiveState.DRAFT, f"draft: not opened yet{missing}"
        case RunState.PAUSED:
            return LiveState.PAUSED, text or "paused"
        case RunState.FINISHING:
            left = _count(evidence.num_peers, "trainer")
            return LiveState.FINISHING, f"finishing: {left} still to leave; {text or 'finished'}"
        case RunState.FINISHED | RunState.ARCHIVED:
            return LiveState.FINISHED, text or "finished"
        case RunState.OPEN:
            return None


def _before_first_report(evidence: SwarmEvidence) -> tuple[LiveState, str]:
    if evidence.changed_seconds <= FIRST_REPORT_SECONDS:
        return LiveState.WARMING_UP, "warming up: waiting for the coordinator's first report"
    return (
        LiveState.UNKNOWN,
        f"unknown: no coordinator has reported in {age(evidence.changed_seconds)}",
    )


def _at_work(evidence: SwarmEvidence) -> tuple[LiveState, str]:
    present = [state for state in evidence.peers if state not in GONE]
    peers = _count(len(present), "peer")
    percent = f"{_percent(evidence)} % of the batch"
    overdue = evidence.epoch_seconds
    if overdue is not None and overdue > stall_seconds(
        evidence.target_batch_size, evidence.samples_per_second
    ):
        return LiveState.STALLED, f"stalled: no epoch for {age(overdue)}, {peers}"
    if all(state in _LOADING for state in present):
        return LiveState.WARMING_UP, f"warming up: {peers} loading the state"
    is_full = evidence.samples_accumulated >= evidence.target_batch_size
    if is_full or PeerState.AVERAGING in present:
        return LiveState.AVERAGING, f"averaging: epoch {evidence.epoch}, {peers}"
    if not evidence.has_finished_epoch:
        return LiveState.WARMING_UP, f"warming up: first epoch, {peers}, {percent}"
    return LiveState.TRAINING, f"training: epoch {evidence.epoch}, {peers}, {percent}"


def _percent(evidence: SwarmEvidence) -> int:
    return min(100, evidence.samples_accumulated * 100 // evidence.target_batch_size)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def swarm_is_empty(states: Iterable[PeerState]) -> bool:
    """Whether nobody is there any more."""
    return all(state in GONE for state in states)
