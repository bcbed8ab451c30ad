"""Whether things are as they should be, judged from facts and the time. Pure.

A verdict of None means that the evidence does not suffice: nothing opens or closes by it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from statistics import median
from typing import Any

from web.alerts.kinds import AlertKind, RuleValues

UNUSABLE_VIEW_SECONDS = 60.0
"""Figures of a coordinator that is silent for longer say nothing of the swarm now."""
MIN_HISTORY = 5
"""Epochs with a loss before a spike can be told from noise."""
HEARTBEAT_FRESH_SECONDS = 120.0
EPOCHS_APART = 2
"""A trainer may be one epoch ahead of the newest snapshot or behind it."""


@dataclass(frozen=True)
class Member:
    """A trainer that said to the site itself, by heartbeat, that it trains."""

    heartbeat_at: datetime
    epoch: int
    joined_at: datetime
    seen_at: datetime | None
    """When the coordinator last saw it in the swarm."""


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run; instants by the site's clock."""

    is_open: bool
    opened_at: datetime
    heard_at: datetime | None = None
    """Of the coordinator's newest snapshot."""
    num_peers: int = 0
    min_peers: int = 1
    epoch: int = 0
    last_epoch_at: datetime | None = None
    losses: tuple[float | None, ...] = ()
    """Of the last finished epochs of this lineage, oldest first."""
    checkpoint_epoch: int | None = None
    lineage_epoch: int = 0
    """The epoch that this lineage began with."""
    checkpoint_every: int = 1
    members: tuple[Member, ...] = ()
    dialled: Mapping[str, bool] = field(default_factory=dict)
    """Answer of each bootstrap address (numbered, not named)."""
    dialled_at: datetime | None = None


@dataclass(frozen=True)
class Verdict:
    is_bad: bool | None
    sentence: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    """Figures with their ages, for people who look closer."""


Judge = Callable[[RunFacts, RuleValues, datetime], Verdict]
UNKNOWN = Verdict(None)


def run_judge(kind: AlertKind, facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    """Judge one kind; a rule that is off and a run that is not open are never bad."""
    if not values.is_on:
        return Verdict(False, "The rule is switched off.")
    if not facts.is_open:
        return Verdict(False, "The run is not open.")
    verdict = _JUDGES[kind](facts, values, now)
    as_of = None if facts.heard_at is None else _ago(facts.heard_at, now)
    return Verdict(verdict.is_bad, verdict.sentence, {**verdict.evidence, "report_age_s": as_of})


def disk_judge(used: int, total: int, values: RuleValues) -> Verdict:
    """Judge the disk of the data folder; sizes in bytes."""
    if not values.is_on:
        return Verdict(False, "The rule is switched off.")
    if total <= 0:
        return UNKNOWN
    share = used / total
    sentence = f"{share:.0%} of the data folder's disk is in use."
    return Verdict(share > values.limit, sentence, {"used_bytes": used, "free_bytes": total - used})


def _ago(at: datetime, now: datetime) -> float:
    return round(max(0.0, (now - at).total_seconds()), 1)


def _is_seen(facts: RunFacts, now: datetime) -> bool:
    return facts.heard_at is not None and _ago(facts.heard_at, now) <= UNUSABLE_VIEW_SECONDS


def _peers(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    if not _is_seen(facts, now):
        return UNKNOWN
    wanted = facts.min_peers * values.limit
    sentence = f"{facts.num_peers} of at least {wanted:g} trainers are in the swarm."
    evidence = {"num_peers": facts.num_peers, "min_peers": facts.min_peers}
    return Verdict(facts.num_peers < wanted, sentence, evidence)


def _no_epoch(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    if not _is_seen(facts, now):
        return UNKNOWN
    since = max(facts.opened_at, facts.last_epoch_at or facts.opened_at)
    minutes = _ago(since, now) / 60
    sentence = f"No epoch was finished for {minutes:.0f} min; the swarm is in epoch {facts.epoch}."
    return Verdict(
        minutes > values.limit, sentence, {"epoch": facts.epoch, "epoch_age_s": _ago(since, now)}
    )


def _coordinator(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    # A pause before it does not count: the coordinator may have been stopped meanwhile.
    silence = _ago(max(facts.heard_at or facts.opened_at, facts.opened_at), now)
    last = "has never reported" if facts.heard_at is None else "is silent"
    sentence = f"The coordinator {last}: nothing for {silence:.0f} s."
    return Verdict(silence > values.limit, sentence, {"silent_s": silence})


def _finite(losses: tuple[float | None, ...]) -> list[float]:
    return [loss for loss in losses if loss is not None and isfinite(loss)]


def _loss_spike(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    known = _finite(facts.losses)
    if len(known) <= MIN_HISTORY:
        return UNKNOWN
    *before, newest = known
    usual = median(before)
    if usual <= 0:
        return UNKNOWN  # a factor means nothing around zero
    sentence = f"The loss is {newest:.4g}, {newest / usual:.2f} times the usual {usual:.4g}."
    evidence = {"loss": newest, "median_before": usual, "epochs": len(before)}
    return Verdict(newest > usual * values.limit, sentence, evidence)


def _loss_not_finite(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    num = int(values.limit)
    last = facts.losses[-num:]
    if len(last) < num:
        return UNKNOWN
    if not _finite(last):
        sentence = f"The last {num} epochs ended without a loss that is a number."
        return Verdict(True, sentence, {"epochs": num})
    return Verdict(False, "The last epochs have a loss.", {"loss": _finite(last)[-1]})


def _bootstrap(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    if not facts.dialled or facts.dialled_at is None:
        return UNKNOWN
    answered = sum(facts.dialled.values())
    total = len(facts.dialled)
    sentence = f"{answered} of {total} bootstrap addresses answer a TCP connection."
    evidence = {
        "answered": answered,
        "dialled": total,
        "dialled_age_s": _ago(facts.dialled_at, now),
    }
    return Verdict(answered < total * values.limit, sentence, evidence)


def _checkpoint(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    if not _is_seen(facts, now):
        return UNKNOWN
    saved = facts.checkpoint_epoch
    behind = facts.epoch - (facts.lineage_epoch if saved is None else saved)
    last = "there is none yet" if saved is None else f"the last is of epoch {saved}"
    sentence = f"{behind} epochs are not saved: {last}."
    evidence = {"epoch": facts.epoch, "saved_epoch": saved, "every": facts.checkpoint_every}
    return Verdict(behind > facts.checkpoint_every * values.limit, sentence, evidence)


def _partition(facts: RunFacts, values: RuleValues, now: datetime) -> Verdict:
    """Compare two independent views: trainers' own heartbeats, and the coordinator's swarm.

    A trainer disagrees when it says that it trains while the coordinator has not seen it for
    long, or when its epoch is far from the swarm's.
    """
    if not _is_seen(facts, now):
        return UNKNOWN
    fresh = [m for m in facts.members if _ago(m.heartbeat_at, now) <= HEARTBEAT_FRESH_SECONDS]
    settled = [m for m in fresh if _ago(m.joined_at, now) > HEARTBEAT_FRESH_SECONDS]
    if len(settled) < 2:
        return Verdict(False, "Too few trainers to be apart.", {"trainers": len(settled)})
    unseen = [
        m for m in settled if m.seen_at is None or _ago(m.seen_at, now) > HEARTBEAT_FRESH_SECONDS
    ]
    elsewhere = [
        m for m in settled if m not in unseen and abs(m.epoch - facts.epoch) > EPOCHS_APART
    ]
    num = len(unseen) + len(elsewhere)
    sentence = (
        f"Of {len(settled)} trainers that report to the site, the coordinator does not see "
        f"{len(unseen)}, and {len(elsewhere)} are in another epoch."
    )
    evidence = {"trainers": len(settled), "unseen": len(unseen), "other_epoch": len(elsewhere)}
    return Verdict(num >= len(settled) * values.limit and num > 0, sentence, evidence)


_JUDGES: dict[AlertKind, Judge] = {
    AlertKind.PEERS_BELOW_MINIMUM: _peers,
    AlertKind.NO_EPOCH: _no_epoch,
    AlertKind.COORDINATOR_SILENT: _coordinator,
    AlertKind.LOSS_SPIKE: _loss_spike,
    AlertKind.LOSS_NOT_FINITE: _loss_not_finite,
    AlertKind.BOOTSTRAP_DOWN: _bootstrap,
    AlertKind.CHECKPOINT_LATE: _checkpoint,
    AlertKind.PARTITION_SUSPECTED: _partition,
}
RUN_KINDS = tuple(_JUDGES)
"""What is judged for each run; the disk belongs to the site."""
