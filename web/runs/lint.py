"""Looks at a config before it is published: what it will do to today's swarm. Pure.

Each rule takes the config and the situation and yields findings.
"""

from collections.abc import Iterator, Sequence

from training.protocol.config import RunConfig
from web.runs.config_diff import config_diff, is_compatible
from web.runs.findings import Finding, Severity, Situation
from web.runs.lint_fleet import FLEET_RULES
from web.runs.lint_training import TRAINING_RULES
from web.runs.model_size import ModelSize, model_size

_ORDER = list(Severity)


def lint(config: RunConfig, situation: Situation) -> list[Finding]:
    """Return what speaks against the config, and what is good to know; the worst first."""
    rules = (_changes, _expiry, *TRAINING_RULES, *FLEET_RULES)
    found = [finding for rule in rules for finding in rule(config, situation)]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def size_of(config: RunConfig | None, defaults: dict[str, object]) -> ModelSize | None:
    """Return the size of a config's model; ``defaults`` are its task's parameters."""
    return model_size(config.task.name, defaults | config.task.params) if config else None


def blockers(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with which nothing is published."""
    return [f for f in findings if f.severity is Severity.ERROR]


def unaccepted(findings: Sequence[Finding], accepted: Sequence[str]) -> list[Finding]:
    """Return the warnings that nobody has ticked yet."""
    return [f for f in findings if f.severity is Severity.WARNING and f.code not in accepted]


def begins_lineage(config: RunConfig, previous: RunConfig | None) -> bool:
    """Whether peers of both configs cannot average: the run begins anew."""
    return previous is not None and not is_compatible(
        previous.model_dump(mode="json"), config.model_dump(mode="json")
    )


def _changes(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    previous = situation.previous
    if previous is None:
        return
    if not config_diff(previous.model_dump(mode="json"), config.model_dump(mode="json")):
        yield Finding(
            "nothing_changed",
            Severity.ERROR,
            f"The draft is the same as version {previous.version}.",
            "Change something, or discard the draft.",
        )
    elif begins_lineage(config, previous):
        yield Finding(
            "new_lineage",
            Severity.WARNING,
            "Task, optimizer or files change: a new lineage begins. Epochs count from zero, the "
            f"model of epoch {situation.epoch} is not taken over, and every trainer starts again.",
            "To keep the model, leave task, optimizer and files as they are.",
        )


def _expiry(config: RunConfig, situation: Situation) -> Iterator[Finding]:
    days = situation.lifetime_days
    if days < 7:
        yield Finding(
            "short_lifetime",
            Severity.WARNING,
            f"The signature is valid for {days:g} days: a site that is away for longer stops "
            "newcomers.",
            "Set BEEYARD_CONFIG_LIFETIME_DAYS to 30 or more.",
        )
    if situation.expires_at is not None and situation.expires_at <= situation.now:
        yield Finding(
            "expired",
            Severity.WARNING,
            f"The version in force expired on {situation.expires_at:%Y-%m-%d}: nothing renewed it.",
            "Publishing helps at once; see that the site's scheduler runs.",
        )
