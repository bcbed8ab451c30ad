"""Rules about the swarm: how long an epoch lasts, who fits, who is reached. Pure."""

from collections.abc import Iterator
from typing import Final

from training.protocol.config import RunConfig
from training.protocol.states import RunState
from web.core.templatetags.ui import seconds as duration_words
from web.core.templatetags.ui import size as size_words
from web.runs.findings import Finding, Severity, Situation

SHORT, GOOD = 4.0, 8.0
"""An epoch lasts at least this many matchmaking times; better so many."""
LONG_SECONDS = 3600.0
RARE_SECONDS = 6 * 3600.0
"""A crash loses what was computed since the last saved state."""
SLOW_LINE = 20e6
"""Bits per second of a usual home's upload."""
_STILL = 1e-6
"""Samples per second below which nobody trains."""
_MET = "swarm.target_batch_size"


def predicted_seconds(config: RunConfig, situation: Situation) -> float | None:
    """Return how long an epoch would last with today's swarm; None: nobody trains now.

    A model of another size is reckoned to be slower or faster by its work per sample.
    """
    rate = situation.fleet.samples_per_second
    if rate < _STILL:
        return None
    old, new = situation.previous_size, situation.size
    if old is not None and new is not None:
        rate *= old.work / new.work
    return config.swarm.target_batch_size / rate


def _epoch(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    seconds, fleet = predicted_seconds(config, situation), situation.fleet
    if seconds is None and fleet.site_samples_per_second >= _STILL:
        there = config.swarm.target_batch_size / fleet.site_samples_per_second
        yield Finding(
            "epoch_seconds_site",
            Severity.INFO,
            f"Nobody trains this run yet. With all {fleet.num_site_trainers} trainers of the "
            f"site's public runs an epoch would take about {duration_words(there)}.",
            "Look again when trainers have joined.",
        )
        return
    if seconds is None:
        yield Finding(
            "no_prediction",
            Severity.INFO,
            "Nobody trains now, so the length of an epoch cannot be predicted.",
            "Look again when trainers have joined.",
        )
        return
    yield Finding(
        "epoch_seconds",
        Severity.INFO,
        f"With today's swarm ({situation.fleet.num_trainers} trainers) an epoch takes about "
        f"{duration_words(seconds)}.",
    )
    wait = config.swarm.matchmaking_seconds
    if seconds < wait * SHORT:
        is_hopeless = seconds < wait
        yield Finding(
            "epoch_too_short",
            Severity.ERROR if is_hopeless else Severity.WARNING,
            f"An epoch of about {duration_words(seconds)} is short beside {wait:g} s of "
            f"matchmaking: peers {'never' if is_hopeless else 'may fail to'} find each other.",
            f"Raise the target batch size {GOOD * wait / seconds:.2g}-fold.",
            _MET,
        )
    elif seconds > LONG_SECONDS:
        yield Finding(
            "epoch_too_long",
            Severity.WARNING,
            f"An epoch would take about {duration_words(seconds)}: who leaves before its end "
            "has worked in vain.",
            "Lower the target batch size, or wait for more trainers.",
            _MET,
        )
    gap = seconds * config.checkpoint.every_epochs
    if gap > RARE_SECONDS:
        yield Finding(
            "checkpoint_rare",
            Severity.WARNING,
            f"A state would be saved every {duration_words(gap)} only.",
            "Save more often.",
            "checkpoint.every_epochs",
        )


def _memory(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    size, known = situation.size, situation.fleet.memory_bytes
    num_unknown = max(0, situation.fleet.num_devices - len(known))
    if size is None:
        yield Finding(
            "memory_unknown",
            Severity.INFO,
            "The site does not know how large this task's model is, so it cannot say who fits.",
        )
        return
    if num_unknown:
        yield Finding(
            "memory_unknown",
            Severity.INFO,
            f"{num_unknown} of {situation.fleet.num_devices} active devices do not say how much "
            "memory they have: whether they fit is not known.",
        )
    if not known:
        return
    too_small = sum(memory < size.memory_bytes for memory in known)
    before = situation.previous_size
    no_longer = sum(
        before is not None and before.memory_bytes <= memory < size.memory_bytes for memory in known
    )
    need = size_words(size.memory_bytes)
    if not too_small:
        who = "the other devices" if num_unknown else "all devices"
        yield Finding("memory", Severity.INFO, f"A trainer needs about {need}; {who} fit.")
        return
    whose = "devices of this run" if situation.fleet.is_of_run else "devices of this site"
    share = 100 * (no_longer or too_small) / len(known)
    words = "would no longer fit" if no_longer else "do not fit"
    yield Finding(
        "devices_do_not_fit",
        Severity.ERROR if too_small == len(known) else Severity.WARNING,
        f"{share:.0f} % of the active {whose} {words}: a trainer needs about {need}.",
        "Make the model or its samples smaller.",
        "task.params",
    )


def _peers(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    wanted, there = config.swarm.min_peers, situation.fleet.num_trainers
    if situation.state is RunState.OPEN and wanted > there:
        yield Finding(
            "too_few_peers",
            Severity.WARNING,
            f"The page will say that the run waits for peers: {there} of {wanted}.",
            "Lower the smallest number of peers, or invite more.",
            "swarm.min_peers",
        )
    old, devices = situation.fleet.num_outdated, situation.fleet.num_devices
    if old:
        is_all = old >= devices
        yield Finding(
            "trainers_too_old",
            Severity.WARNING,
            f"{'All' if is_all else f'{100 * old / devices:.0f} % of the'} active devices "
            f"run a trainer older than {config.min_trainer_version[:40]}: they are told to "
            "upgrade.",
            "Take the version that most of them have.",
            "min_trainer_version",
        )


def _entrance(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    dialled = situation.dialled
    lost = [entry for entry in dialled if not entry.is_reached]
    if dialled and len(lost) == len(dialled):
        yield Finding(
            "bootstrap_unreachable",
            Severity.ERROR if situation.state is RunState.OPEN else Severity.WARNING,
            f"No address at which the swarm is entered answers ({len(dialled)} dialled): "
            f"{lost[0].text}.",
            "See that the coordinator runs and its port is open.",
        )
    elif lost:
        yield Finding(
            "bootstrap_partly_unreachable",
            Severity.WARNING,
            f"{len(lost)} of {len(dialled)} addresses at which the swarm is entered do not answer.",
            "Old ones are forgotten after a week; look at the coordinators that should run.",
        )
    elif dialled:
        text = f"The swarm can be entered: all addresses ({len(dialled)} dialled) answer."
        yield Finding("bootstrap_reachable", Severity.INFO, text)
    elif situation.state is RunState.OPEN:
        yield Finding(
            "bootstrap_unknown",
            Severity.WARNING,
            "No address is known at which the swarm can be entered.",
            "Launch trainers at the desk: a coordinator comes with the first.",
        )


def _rhythms(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    swarm, report, size = config.swarm, config.report, situation.size
    if swarm.request_timeout_seconds >= swarm.matchmaking_seconds:
        yield Finding(
            "request_timeout_long",
            Severity.ERROR,
            "One question to a peer may take as long as all of matchmaking: groups do not form.",
            "Make the request timeout about a third of the matchmaking time.",
            "swarm.request_timeout_seconds",
        )
    if report.metrics_expire_seconds < 3 * report.publish_seconds:
        yield Finding(
            "reports_expire_early",
            Severity.WARNING,
            "Reports of trainers expire before the next ones can arrive: peers will flicker.",
            "Let them live 10 times as long as the rhythm of reports.",
            "report.metrics_expire_seconds",
        )
    if size is not None:
        bits = size.num_parameters * (16 if swarm.compression == "float16" else 32)
        seconds = 2 * bits / SLOW_LINE
        if seconds > swarm.averaging_timeout_seconds:
            yield Finding(
                "averaging_timeout_short",
                Severity.WARNING,
                f"Averaging this model takes about {duration_words(seconds)} over a line of "
                "20 Mbit/s, longer than the averaging timeout.",
                f"Raise the timeout to {2 * seconds:.0f} s.",
                "swarm.averaging_timeout_seconds",
            )


def _openness(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    if config.swarm.admission == "open":
        yield Finding(
            "admission_open",
            Severity.WARNING,
            "Anybody who knows an address may join the swarm, without a pass; nobody can be "
            "shut out of it.",
            "Take admission by pass unless no stranger can reach the swarm.",
            "swarm.admission",
        )
    if config.swarm.robust_averaging == "off":
        yield Finding(
            "robust_off",
            Severity.WARNING,
            "Robust averaging is off: one broken machine can spoil the model for all.",
            "Set it to clip.",
            "swarm.robust_averaging",
        )


FLEET_RULES: Final = (_epoch, _memory, _peers, _entrance, _rhythms, _openness)
