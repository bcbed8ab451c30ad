"""What is watched: each kind with its limit, patience, severity and remedy. Pure."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class AlertKind(StrEnum):
    PEERS_BELOW_MINIMUM = "peers_below_minimum"
    NO_EPOCH = "no_epoch"
    COORDINATOR_SILENT = "coordinator_silent"
    LOSS_SPIKE = "loss_spike"
    LOSS_NOT_FINITE = "loss_not_finite"
    BOOTSTRAP_DOWN = "bootstrap_down"
    CHECKPOINT_LATE = "checkpoint_late"
    PARTITION_SUSPECTED = "partition_suspected"
    DISK_FILLING = "disk_filling"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True)
class Rule:
    """How one kind is judged. ``limit`` has the meaning and unit that ``limit_text`` says."""

    title: str
    limit_text: str
    limit: float
    limit_range: tuple[float, float]
    opens_seconds: int
    """So long it has to look bad before an alert opens."""
    closes_seconds: int
    """So long it has to look good again before the alert closes."""
    severity: Severity
    remedy: str
    is_on: bool = True


PATIENCE_MAX = 86_400
RULES: dict[AlertKind, Rule] = {
    AlertKind.PEERS_BELOW_MINIMUM: Rule(
        *("Too few peers", "Share of the config's minimum of peers", 1.0, (0.1, 100.0)),
        *(120, 120, Severity.WARNING),
        "Launch managed trainers at the desk, or ask volunteers to come back.",
    ),
    AlertKind.NO_EPOCH: Rule(
        *("No epoch", "Minutes without a finished epoch", 15.0, (1.0, 10_080.0)),
        *(60, 60, Severity.CRITICAL),
        "Look at the peers' state: a target batch far above the swarm's speed, or peers that find "
        "no group, stop epochs. Lower the target batch size or restart stuck trainers.",
    ),
    AlertKind.COORDINATOR_SILENT: Rule(
        *("Coordinator silent", "Seconds without a report", 60.0, (10.0, 86_400.0)),
        *(30, 30, Severity.CRITICAL),
        "Restart the coordinator at the desk and read the end of its log. Training goes on "
        "without it, but nothing is seen or counted meanwhile.",
    ),
    AlertKind.LOSS_SPIKE: Rule(
        *("Loss spike", "Times the median of the epochs before", 1.5, (1.01, 1000.0)),
        *(30, 300, Severity.WARNING),
        "Look for a config change or an odd peer just before it. If the loss does not come back, "
        "undo the harm or roll back to a checkpoint.",
    ),
    AlertKind.LOSS_NOT_FINITE: Rule(
        *("Loss is not a number", "Last epochs without a usable loss", 2.0, (1.0, 30.0)),
        *(0, 300, Severity.CRITICAL),
        "Pause the run, roll back to the last good checkpoint, and lower the learning rate.",
    ),
    AlertKind.BOOTSTRAP_DOWN: Rule(
        *("Bootstrap peers down", "Share of addresses that have to answer", 0.5, (0.01, 1.0)),
        *(60, 60, Severity.CRITICAL),
        "Nobody new can enter by these addresses: start the coordinator or bootstrap peers "
        "again, and check firewall and port.",
    ),
    AlertKind.CHECKPOINT_LATE: Rule(
        *("Checkpoint late", "Times the epochs between two checkpoints", 2.0, (1.0, 1000.0)),
        *(120, 0, Severity.WARNING),
        "Look at the coordinator's log and the free disk: it loads the state from peers and "
        "saves it.",
    ),
    AlertKind.PARTITION_SUSPECTED: Rule(
        *("Partition suspected", "Share of trainers that disagree", 0.3, (0.01, 1.0)),
        *(120, 120, Severity.CRITICAL),
        "Part of the swarm may train by itself. Check that all peers use the same bootstrap "
        "peers, then restart those that the coordinator does not see.",
    ),
    AlertKind.DISK_FILLING: Rule(
        *("Disk filling", "Share of the disk in use", 0.9, (0.1, 1.0)),
        *(60, 300, Severity.WARNING),
        "Free space below the data folder: old checkpoints, artifacts and logs.",
    ),
}


@dataclass(frozen=True)
class RuleValues:
    """What may be changed of a rule for one run."""

    is_on: bool
    limit: float
    opens_seconds: int
    closes_seconds: int

    def as_json(self) -> dict[str, Any]:
        return {
            "is_on": self.is_on,
            "limit": self.limit,
            "opens_seconds": self.opens_seconds,
            "closes_seconds": self.closes_seconds,
        }


def rule_values(kind: AlertKind, changed: dict[str, Any] | None = None) -> RuleValues:
    """Return the defaults of a kind with a run's changes."""
    rule = RULES[kind]
    values = RuleValues(rule.is_on, rule.limit, rule.opens_seconds, rule.closes_seconds)
    known = {k: v for k, v in (changed or {}).items() if k in values.as_json()}
    return replace(values, **known)


def rule_values_check(kind: AlertKind, values: RuleValues) -> str:
    """Return what is wrong with changed values in a sentence, '' when nothing is."""
    low, high = RULES[kind].limit_range
    if not low <= values.limit <= high:
        return f"{RULES[kind].title}: the limit lies between {low:g} and {high:g}."
    for seconds in (values.opens_seconds, values.closes_seconds):
        if not 0 <= seconds <= PATIENCE_MAX:
            return f"{RULES[kind].title}: patience lies between 0 and {PATIENCE_MAX} s."
    return ""
