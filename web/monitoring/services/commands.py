"""What a moderator asks of one peer: commands, a rest, and the end of it."""

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import Command, Role
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.selectors import right_require


@transaction.atomic
def peer_command_add(actor: User, peer: Peer, command: Command) -> None:
    """Leave a command for the peer's next heartbeat.

    Raises:
        AppError: FORBIDDEN.
    """
    row = peer_lock(actor, peer)
    row.commands = [*(c for c in row.commands if c != command), str(command)]
    row.save(update_fields=("commands",))
    peer.commands = row.commands
    audit_record(
        actor, "peer.command.sent", f"{peer.run.slug}/{peer.public_id}", {"command": str(command)}
    )


@transaction.atomic
def peer_pause(actor: User, peer: Peer, reason: str) -> None:
    """Let one peer rest from its next heartbeat on, until it is resumed.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, a coordinator, or it rests already).
    """
    row = peer_lock(actor, peer)
    if not reason.strip():
        raise AppError(ErrorCode.BODY_INVALID, "reason: say why.")
    if row.role == Role.COORDINATOR:
        raise AppError(ErrorCode.BODY_INVALID, "A coordinator cannot rest: pause the run instead.")
    if row.paused_at is not None:
        raise AppError(ErrorCode.BODY_INVALID, "This peer rests already.")
    row.paused_at, row.paused_reason = timezone.now(), reason.strip()[:300]
    _save(peer, row)
    data = {"reason": row.paused_reason, "before": {"rests": False}, "after": {"rests": True}}
    audit_record(actor, "peer.paused", f"{peer.run.slug}/{peer.public_id}", data)


@transaction.atomic
def peer_resume(actor: User, peer: Peer, reason: str = "") -> None:
    """Let a resting peer go on at its next heartbeat; again: changes nothing.

    Raises:
        AppError: FORBIDDEN.
    """
    row = peer_lock(actor, peer)
    if row.paused_at is None:
        return
    row.paused_at, row.paused_reason = None, ""
    _save(peer, row)
    data = {"before": {"rests": True}, "after": {"rests": False}}
    why = {"reason": reason.strip()[:300]} if reason.strip() else {}
    audit_record(actor, "peer.resumed", f"{peer.run.slug}/{peer.public_id}", data | why)


def peer_lock(actor: User, peer: Peer) -> Peer:
    """Return the peer's row, locked, for somebody who may moderate its run.

    The run is locked first, as when a peer joins.

    Raises:
        AppError: FORBIDDEN.
    """
    run = Run.objects.select_for_update().get(pk=peer.run_id)
    right_require(actor, run, Right.MODERATE)
    return Peer.objects.select_for_update().get(pk=peer.pk)


def _save(peer: Peer, row: Peer) -> None:
    row.save(update_fields=("paused_at", "paused_reason"))
    for field in ("paused_at", "paused_reason"):
        setattr(peer, field, getattr(row, field))
