"""Why work waits or does not count, and what makes a device suspicious: codes and sentences."""

from enum import StrEnum
from typing import Final


class Ground(StrEnum):
    """Why a ledger entry is what it is."""

    PROVEN = ""
    BARRED = "barred"
    DISCARDED = "discarded"
    UNSIGNED = "unsigned"
    AWAITING_WITNESSES = "awaiting_witnesses"
    NOT_IN_GROUP = "not_in_group"
    WITHOUT_WEIGHT = "without_weight"
    ABOVE_WEIGHT = "above_weight"
    ONE_WORD = "one_word"
    """One account says that its part carried less."""
    RECORDED = "recorded"
    UNWITNESSED = "unwitnessed"
    UNHEARD = "unheard"
    IMPLAUSIBLE = "implausible"
    SUM_TOO_LARGE = "sum_too_large"
    QUARANTINED = "quarantined"
    DECIDED = "decided"
    """An organiser decided."""


class SuspicionKind(StrEnum):
    """What was noticed about a device."""

    IMPOSSIBLE_THROUGHPUT = "impossible_throughput"
    KEY_IN_TWO_PLACES = "key_in_two_places"
    LOSS_OUTLIER = "loss_outlier"
    SAMPLES_WITHOUT_AVERAGING = "samples_without_averaging"
    CLOCK = "clock"
    CLAIM_ABOVE_WEIGHT = "claim_above_weight"
    QUARANTINE = "quarantine"
    """Not noticed by the site: a moderator put the machine there."""


TEXTS: Final[dict[Ground, str]] = {
    Ground.PROVEN: "",
    Ground.DISCARDED: (
        "the machine took over the swarm's state before they were averaged; "
        "those that it kept count in the next epoch"
    ),
    Ground.UNSIGNED: "no signed report named this epoch in time, and nothing else shows it there",
    Ground.RECORDED: "no signed report came in time; the machine's progress record stands",
    Ground.AWAITING_WITNESSES: "nobody who averaged in this epoch told of its round in time",
    Ground.NOT_IN_GROUP: "nobody in this epoch's averaging rounds saw the machine there",
    Ground.WITHOUT_WEIGHT: "its part in the average carried no samples, by those who averaged it",
    Ground.ABOVE_WEIGHT: "{claimed} were stated; those who averaged them saw {samples}",
    Ground.UNWITNESSED: "nobody else's account of this epoch is left; the machine's record stands",
    Ground.UNHEARD: "the machine was alone, unrecorded, and sent no heartbeat",
    Ground.IMPLAUSIBLE: "more than the machine says it computed at all",
}
PROVISIONAL_TEXTS: Final[dict[Ground, str]] = {
    Ground.UNSIGNED: "waits for the machine's signed report of this epoch",
    Ground.AWAITING_WITNESSES: "waits for those who averaged with the machine",
    Ground.NOT_IN_GROUP: "no averaging round shows the machine yet",
    Ground.UNHEARD: "the machine was alone and unrecorded; waits for its heartbeat",
    Ground.IMPLAUSIBLE: "more than the machine says it computed at all",
    Ground.ONE_WORD: "the one account that averaged with it saw {seen} samples; organisers decide",
    Ground.SUM_TOO_LARGE: "the epoch's claims exceed what the swarm accumulated; organisers decide",
}
SUSPICION_TEXTS: Final[dict[SuspicionKind, str]] = {
    SuspicionKind.IMPOSSIBLE_THROUGHPUT: "faster than its hardware can be",
    SuspicionKind.KEY_IN_TWO_PLACES: "its key seems to be used in two places",
    SuspicionKind.LOSS_OUTLIER: "its loss is far from everybody else's",
    SuspicionKind.SAMPLES_WITHOUT_AVERAGING: "it claimed samples that nobody averaged",
    SuspicionKind.CLOCK: "its signed reports are dated wrongly",
    SuspicionKind.CLAIM_ABOVE_WEIGHT: "it claimed more than its part in the average carried",
    SuspicionKind.QUARANTINE: "a moderator put it in quarantine",
}
SUSPICION_REMEDIES: Final[dict[SuspicionKind, str]] = {
    SuspicionKind.IMPOSSIBLE_THROUGHPUT: "Check that the hardware shown for it is right.",
    SuspicionKind.KEY_IN_TWO_PLACES: "Run one trainer per machine; a copied home needs new keys.",
    SuspicionKind.LOSS_OUTLIER: "Check the machine's memory and GPU, then restart the trainer.",
    SuspicionKind.SAMPLES_WITHOUT_AVERAGING: "Check that others can reach it: `beeyard doctor`.",
    SuspicionKind.CLOCK: "Set the machine's clock by a time server.",
    SuspicionKind.CLAIM_ABOVE_WEIGHT: "Install the trainer's newest version and restart it.",
    SuspicionKind.QUARANTINE: "Keep training; ask the organisers why if they did not say.",
}


def held_text(kind: SuspicionKind) -> str:
    """Return why the work of a suspicious device waits."""
    return f"waits for an organiser: {SUSPICION_TEXTS[kind]}"
