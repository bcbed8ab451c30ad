"""The audit log: acts with consequences, written in the transaction of the act itself.

Write an entry last: it locks the end of the chain until the transaction is over, and whoever
waits for other rows with that lock in hand could wait for ever.
"""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.core.chain import START, content_of, link_hash, plain
from web.core.errors import AppError
from web.core.models import AuditEntry, AuditHead

HEAD = 1
"""Primary key of the only row of AuditHead."""
_OF_RUNS = (
    "run.",
    "peer.",
    "worker.",
    "suspicion.",
    "checkpoint.",
    "evaluation.",
    "alert.",
    "webhook.",
)
_OF_A_RUN = frozenset({"ledger.corrected", "ledger.reversed"})


def reason_require(reason: str) -> str:
    """Return a reason without the space around it; BODY_INVALID when none is given."""
    text = reason.strip()
    if not text:
        raise AppError(ErrorCode.BODY_INVALID, "reason: say why.")
    return text


@transaction.atomic
def audit_record(
    actor: AbstractBaseUser | None,
    code: str,
    target: str,
    data: dict[str, Any] | None = None,
    *,
    run: str | None = None,
) -> AuditEntry:
    """Write down one act. ``actor`` None: the site itself; ``code`` dotted, past tense.

    ``data`` says more by name: ``reason`` for why, ``before`` and ``after`` for what changed.
    ``run``: the slug, when ``target`` does not begin with it.
    """
    head = _head_lock()
    fields = {
        "seq": head.seq + 1,
        "at": timezone.now(),
        "actor_id": actor.pk if actor else None,
        "actor_name": actor.get_username()[:150] if actor else "",
        "code": code[:80],
        "target": target[:200],
        "run": run_of(code, target) if run is None else run[:60],
        "data": plain(data or {}),
    }
    previous = head.hash or START
    digest = link_hash(previous, content_of(**fields))
    entry = AuditEntry.objects.create(previous=previous, hash=digest, **fields)
    head.seq, head.hash = entry.seq, entry.hash
    head.save(update_fields=("seq", "hash"))
    return entry


def run_of(code: str, target: str) -> str:
    """Return the slug of the run that an act is about; '' for acts on people or the site."""
    if code.startswith(_OF_RUNS) or code in _OF_A_RUN:
        return target.split("/", 1)[0][:60]
    return ""


def _head_lock() -> AuditHead:
    """Return the end of the chain, locked until the transaction is over."""
    head = AuditHead.objects.select_for_update().filter(pk=HEAD).first()
    if head is None:  # a new database, or one that was emptied
        newest = AuditEntry.objects.order_by("-seq").first()
        defaults = {"seq": newest.seq, "hash": newest.hash} if newest else {}
        AuditHead.objects.get_or_create(pk=HEAD, defaults=defaults)
        head = AuditHead.objects.select_for_update().get(pk=HEAD)
    return head
