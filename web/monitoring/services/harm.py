"""Ban, recompute, roll back: looked at first, then done in one transaction."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.devices import device_revoke
from web.accounts.models import Device, User
from web.accounts.services import user_ban
from web.contributions.models import LedgerEntry
from web.contributions.reversal import (
    entries_rejectable,
    entries_reverse,
    entries_reversible,
    reversal_sums,
)
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.monitoring.models import HarmUndo
from web.monitoring.services.revocations import revocations_update, runs_lock_of
from web.monitoring.spread import trainers_present
from web.runs.lifecycle import OVER
from web.runs.models import Checkpoint, Run
from web.runs.selectors import checkpoint_before, config_newest, lineage_path, run_is_organised_by
from web.runs.services import run_bar_add, run_bar_is_allowed, run_rewind

Action = HarmUndo.Action


@dataclass(frozen=True)
class Harm:
    """Whose work is to be undone, and from which epoch on."""

    run: Run
    user: User
    from_epoch: int
    device: Device | None = None
    """Only this device's, when given."""


@dataclass(frozen=True)
class HarmPreview:
    """What undoing would do. Counts are of now: work that arrives meanwhile is included then."""

    num_entries: int
    num_waiting: int
    """Provisional entries, which would be rejected."""
    samples: int
    first_epoch: int | None
    last_epoch: int | None
    checkpoint: Checkpoint | None
    """The newest saved state from before the harm; None: the run cannot be rolled back."""
    num_peers: int
    """Verified trainers in the swarm, which would have to reload."""
    heartbeat_seconds: float
    """Trainers hear of a new config after so long at most."""


def harm_preview(harm: Harm) -> HarmPreview:
    """Return what undoing the harm would do."""
    counting, waiting = _entries(harm)
    sums = reversal_sums(counting)
    config = config_newest(harm.run)
    report = config.body.get("report", {}) if config else {}
    return HarmPreview(
        num_entries=sums["num"] or 0,
        num_waiting=waiting.count(),
        samples=sums["total"] or 0,
        first_epoch=sums["first"],
        last_epoch=sums["last"],
        checkpoint=harm_checkpoint(harm),
        num_peers=len(trainers_present(harm.run)),
        heartbeat_seconds=float(report.get("heartbeat_seconds", 0.0)),
    )


def harm_checkpoint(harm: Harm) -> Checkpoint | None:
    """Return the state that the run would go back to."""
    return None if harm.run.state in OVER else checkpoint_before(harm.run, harm.from_epoch)


def harm_actions(actor: User, harm: Harm) -> list[Action]:
    """Return how the actor may shut the account or device out, the mildest first."""
    offered = [Action.NONE]
    if run_bar_is_allowed(harm.run, harm.user):
        offered.append(Action.BAR)
    if actor.is_staff and harm.device is not None and not harm.device.is_revoked:
        offered.append(Action.REVOKE)
    is_equal = harm.user.is_superuser and not actor.is_superuser
    if actor.is_staff and not is_equal and not harm.user.is_service and actor.pk != harm.user.pk:
        offered.append(Action.BAN)
    return offered


@transaction.atomic
def harm_undo(
    actor: User, harm: Harm, *, action: Action, checkpoint: Checkpoint | None, reason: str
) -> HarmUndo:
    """Shut out, take back, and roll the run back to ``checkpoint`` (None: leave the model).

    Cannot be undone itself: the ledger is only added to, and trained epochs are thrown away.

    Raises:
        AppError: FORBIDDEN, BODY_INVALID (no reason, or a state that is not from before the
            harm), or RUN_OVER.
    """
    runs_lock_of(harm.user, harm.run)
    run = Run.objects.get(pk=harm.run.pk)
    if not run_is_organised_by(actor, run) or action not in harm_actions(actor, harm):
        raise AppError(ErrorCode.FORBIDDEN, "You may not do this to this account.")
    text = reason_require(reason)[:300]
    if checkpoint is not None and checkpoint != harm_checkpoint(harm):
        raise AppError(
            ErrorCode.BODY_INVALID, "The state to go back to is not kept any more; look again."
        )
    _shut_out(actor, harm, action, text)
    num_peers = len(trainers_present(run))
    counting, waiting = _entries(harm)
    reversed_entries = entries_reverse(actor, run, counting, text, waiting=waiting)
    config = run_rewind(actor, run, checkpoint) if checkpoint else None
    now = timezone.now()
    undo = HarmUndo.objects.create(
        run=run,
        actor=actor,
        user=harm.user,
        device=harm.device,
        from_epoch=harm.from_epoch,
        action=action,
        reason=text,
        num_entries=len(reversed_entries),
        samples=-sum(entry.samples for entry in reversed_entries),
        revocations_seq=revocations_update(run, now).seq,
        config=config,
        num_peers=num_peers,
        made_at=now,
    )
    _audit(undo, checkpoint)
    return undo


def _entries(harm: Harm) -> tuple[QuerySet[LedgerEntry], QuerySet[LedgerEntry]]:
    """Return what counts and would be taken back, and what waits and would be rejected."""
    lineages = [lineage for lineage, _ in lineage_path(harm.run)]
    counting, waiting = (
        find(harm.run, lineages, harm.user, from_epoch=harm.from_epoch, device=harm.device)
        for find in (entries_reversible, entries_rejectable)
    )
    return counting, waiting


def _shut_out(actor: User, harm: Harm, action: Action, reason: str) -> None:
    if action == Action.BAR:
        run_bar_add(actor, harm.run, harm.user, reason)
    elif action == Action.BAN:
        user_ban(actor, harm.user, reason)
    elif action == Action.REVOKE and harm.device is not None:
        device_revoke(actor, harm.device)


def _audit(undo: HarmUndo, checkpoint: Checkpoint | None) -> None:
    audit_record(
        undo.actor,
        "run.harm.undone",
        undo.run.slug,
        {
            "user": undo.user.username,
            "device": undo.device.public_id if undo.device else "",
            "from_epoch": undo.from_epoch,
            "action": undo.action,
            "entries": undo.num_entries,
            "samples": undo.samples,
            "back_to_epoch": checkpoint.epoch if checkpoint else None,
            "reason": undo.reason,
        },
    )
