"""Quarantine: a suspicion that a moderator raises. New work waits until it is decided."""

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.contributions.grounds import SuspicionKind
from web.contributions.models import Suspicion
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.roles import Right
from web.runs.selectors import right_require


@transaction.atomic
def device_quarantine(actor: User, run: Run, device: Device, reason: str) -> Suspicion:
    """Hold a machine's new work back from now on, until :func:`suspicion_decide` releases it.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, or it is there already).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    right_require(actor, row, Right.MODERATE)
    text = reason.strip()[:200]
    if not text:
        raise AppError(ErrorCode.BODY_INVALID, "reason: say why.")
    kind = SuspicionKind.QUARANTINE
    is_there = {"run": row, "device": device, "kind": kind, "state": Suspicion.State.OPEN}
    if Suspicion.objects.filter(**is_there).exists():
        raise AppError(ErrorCode.BODY_INVALID, "This machine is in quarantine already.")
    suspicion = Suspicion.objects.create(
        run=row,
        device=device,
        kind=kind,
        evidence={"by": actor.username, "reason": text},
        at=timezone.now(),
    )
    data = {"reason": text, "device": device.name, "owner": device.user.username}
    audit_record(actor, "suspicion.quarantined", f"{run.slug}/{device.public_id}", data)
    return suspicion
