"""What the pages about undone harm show."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Q

from training.protocol.errors import ErrorCode
from training.protocol.states import Role
from web.accounts.models import Device, User
from web.contributions.models import ContributionTotal
from web.core.errors import AppError
from web.monitoring.models import EpochRecord, HarmUndo, Peer, RunSwarm
from web.monitoring.selectors import revocations_spread
from web.monitoring.services.harm import Harm, HarmPreview
from web.runs.models import Run

MAX_TARGETS = 2000


def targets_of(run: Run) -> list[tuple[str, str]]:
    """Return the accounts and devices that took part in a run, as choices of a form."""
    coordinators = Peer.objects.filter(run=run, role=Role.COORDINATOR).values("device")
    devices = Device.objects.filter(Q(peers__run=run) | Q(ledger__run=run))
    devices = devices.exclude(pk__in=coordinators)
    rows = devices.select_related("user").distinct().order_by("user__username", "name", "pk")
    choices: list[tuple[str, str]] = []
    for name, own in groupby(rows[:MAX_TARGETS], lambda device: device.user.username):
        choices.append((f"user:{name}", f"{name}: all devices"))
        choices += [(f"device:{d.public_id}", f"{name}: only {d.name}") for d in own]
    return choices


def harm_of(run: Run, target: str, from_epoch: int) -> Harm:
    """Return the harm that one of the choices stands for.

    Raises:
        AppError: NOT_FOUND.
    """
    kind, _, name = target.partition(":")
    if kind == "device":
        device = Device.objects.select_related("user").filter(public_id=name).first()
        if device is not None:
            return Harm(run, device.user, from_epoch, device)
    else:
        user = User.objects.filter(username=name).first()
        if user is not None:
            return Harm(run, user, from_epoch)
    raise AppError(ErrorCode.NOT_FOUND, "There is no such account or device.")


@dataclass(frozen=True)
class BoardEffect:
    """What happens to the account's place on the leaderboard."""

    samples_before: int
    samples_after: int
    rank_before: int | None
    rank_after: int | None
    """None: not ranked."""


def board_effect(harm: Harm, preview: HarmPreview) -> BoardEffect:
    """Return the account's samples and rank now and after the reversal (no suspension)."""
    totals = ContributionTotal.objects.filter(run=harm.run)
    before = totals.filter(user=harm.user).values_list("samples", flat=True).first() or 0
    after = before - preview.samples
    others = totals.exclude(user=harm.user).filter(user__is_service=False, user__banned_at=None)

    def rank(samples: int) -> int | None:
        if samples <= 0 or harm.user.is_service or harm.user.is_banned:
            return None
        return others.filter(samples__gt=samples).count() + 1

    return BoardEffect(before, after, rank(before), rank(after))


@dataclass(frozen=True)
class Step:
    """One thing that has to happen, and whether it has."""

    title: str
    text: str
    is_done: bool


def progress_of(undo: HarmUndo) -> dict[str, Any]:
    """Return the steps, in order, and whether all of them are done."""
    steps = [*_access_steps(undo), _ledger_step(undo), *_rewind_steps(undo)]
    return {"steps": steps, "is_over": all(step.is_done for step in steps)}


def _access_steps(undo: HarmUndo) -> list[Step]:
    if undo.action == HarmUndo.Action.NONE:
        return []
    titles = {
        HarmUndo.Action.BAR: f"{undo.user.username} is barred from this run",
        HarmUndo.Action.BAN: f"{undo.user.username} is suspended on the whole site",
        HarmUndo.Action.REVOKE: f"The device {undo.device.name if undo.device else ''} is revoked",
    }
    spread = revocations_spread(undo.run)
    seen = f"seen by {spread.num_seen} of {spread.num_peers} peers"
    return [
        Step(titles[HarmUndo.Action(undo.action)], "No pass is given out any more.", True),
        Step(
            "The swarm refuses the revoked peers",
            f"Revocation list {spread.revoked.seq}: {seen}.",
            not spread.late,
        ),
    ]


def _ledger_step(undo: HarmUndo) -> Step:
    entries = f"{undo.num_entries:,} entr{'y' if undo.num_entries == 1 else 'ies'}"
    text = f"{entries} with {undo.samples:,} samples from epoch {undo.from_epoch} on."
    return Step("The ledger is corrected", text, True)


def _rewind_steps(undo: HarmUndo) -> list[Step]:
    if undo.config is None:
        return []
    lineage, start = undo.config.lineage, undo.config.body["start"]["epoch"]
    coordinator = RunSwarm.objects.filter(run=undo.run).values_list("coordinator", flat=True)
    members = Peer.objects.filter(run=undo.run, lineage__gte=lineage)
    has_taken_over = members.filter(device__in=coordinator).exists()
    num_back = members.filter(role=Role.TRAINER).exclude(device__revoked_at__isnull=False).count()
    first = EpochRecord.objects.filter(run=undo.run, lineage__gte=lineage).order_by("epoch").first()
    peers = f"{num_back} of {undo.num_peers} trainers began anew, at their next heartbeat."
    if not undo.num_peers:
        peers = "Nobody had to; whoever joins begins there."
    finished = f"Epoch {first.epoch} was finished from there." if first else "Waiting for it."
    return [
        Step(
            f"The coordinator restores the state of epoch {start}",
            f"Config version {undo.config.version} begins lineage {lineage}.",
            has_taken_over,
        ),
        Step("The trainers reload", peers, num_back > 0 or not undo.num_peers),
        Step("The first epoch after it is finished", finished, first is not None),
    ]
