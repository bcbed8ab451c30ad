"""The links about finished epochs: took part in an average, plausible, in the ledger."""

from typing import Final

from training.protocol.states import CreditState
from web.accounts.models import Device
from web.contributions.grounds import (
    SUSPICION_REMEDIES,
    SUSPICION_TEXTS,
    Ground,
    SuspicionKind,
)
from web.contributions.models import LedgerEntry, Suspicion
from web.monitoring.models import EpochRecord
from web.monitoring.why_links import Case, Link
from web.runs.models import Run

MISSED_EPOCHS = 3
"""So many epochs without a machine that has joined are more than a coincidence."""
_OF_AVERAGING: Final = {
    Ground.UNSIGNED: "Keep the trainer running to the end of an epoch and let it leave by itself.",
    Ground.AWAITING_WITNESSES: "",
    Ground.NOT_IN_GROUP: "Others cannot reach it: run `beeyard doctor` with the run's address.",
    Ground.WITHOUT_WEIGHT: "Install the trainer's newest version and restart it.",
    Ground.UNHEARD: "Let its heartbeats reach this site: check its network.",
    Ground.DISCARDED: "It fell behind the others; a faster connection or fewer other tasks help.",
}
_OF_PLAUSIBILITY: Final = {
    Ground.IMPLAUSIBLE: "Install the trainer's newest version and restart it.",
    Ground.SUM_TOO_LARGE: "Organisers look at it; write to them if they do not.",
    Ground.ONE_WORD: "Organisers look at it; write to them if they do not.",
    Ground.QUARANTINED: "Organisers look at it; write to them if they do not.",
}
_WAIT = "Nothing has to be done: it is decided within minutes."


def newest_entry(run: Run, device: Device) -> LedgerEntry | None:
    """Return a machine's newest entry; of one that was settled, the settlement."""
    entries = LedgerEntry.objects.filter(run=run, device=device, corrects=None, settlement=None)
    return entries.order_by("-lineage", "-epoch").first()


def averaged(case: Case) -> Link:
    """Whether the machine took part in an averaging round lately."""
    entry, missed = case.entry, _missed(case)
    if entry is None and not missed:
        text = "No epoch has finished since it joined."
        remedy = "Samples are counted when an epoch ends with you in it: stay until the next one."
        return Link("averaged", None, text, remedy)
    if entry is None or missed >= MISSED_EPOCHS:
        text = f"{missed} epochs finished without it."
        remedy = (
            "Stay until an epoch ends; if it does, run `beeyard doctor` with the run's address."
        )
        return Link("averaged", False, text, remedy)
    if entry.ground in _OF_AVERAGING:
        return _undone("averaged", entry, _OF_AVERAGING[Ground(entry.ground)])
    return Link("averaged", True, f"It took part in the average that ended epoch {entry.epoch}.")


def plausible(case: Case) -> Link:
    """Whether anything about the machine or its claim looks wrong."""
    suspicion = Suspicion.objects.filter(
        run=case.run, device=case.device, state=Suspicion.State.OPEN
    ).last()
    if suspicion is not None:
        kind = SuspicionKind(suspicion.kind)
        text = f"Its new work waits for an organiser: {SUSPICION_TEXTS[kind]}."
        return Link("plausible", False, text, f"{SUSPICION_REMEDIES[kind]} Nothing is lost.")
    entry = case.entry
    if entry is not None and entry.ground in _OF_PLAUSIBILITY:
        return _undone("plausible", entry, _OF_PLAUSIBILITY[Ground(entry.ground)])
    return Link("plausible", True, "Its figures are plausible.")


def counted(case: Case) -> Link:
    """Whether the newest work is in the ledger."""
    entry = case.entry
    if entry is None or entry.state != CreditState.CONFIRMED:
        return _undone("counted", entry, "Write to the organisers.")
    text = f"{entry.samples:,} samples of epoch {entry.epoch} were counted"
    return Link("counted", True, f"{text}: {entry.reason}." if entry.reason else f"{text}.")


def _undone(step: str, entry: LedgerEntry | None, remedy: str) -> Link:
    if entry is None:
        return Link(step, None, "Nothing of it is in the ledger yet.", _WAIT)
    what = f"{entry.samples:,} samples of epoch {entry.epoch}"
    if entry.state == CreditState.PROVISIONAL:
        return Link(step, None, f"{what} are provisional: {entry.reason}.", remedy or _WAIT)
    return Link(step, False, f"{what} were not counted: {entry.reason}.", remedy)


def _missed(case: Case) -> int:
    """Return how many epochs of its swarm finished since it joined, after its newest entry."""
    if case.peer is None:
        return 0
    records = EpochRecord.objects.filter(
        run=case.run, lineage=case.peer.lineage, finished_at__gt=case.peer.joined_at
    )
    if case.entry is not None and case.entry.lineage == case.peer.lineage:
        records = records.filter(epoch__gt=case.entry.epoch)
    return records.count()
