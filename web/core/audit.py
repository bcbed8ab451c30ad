"""The audit log: acts with consequences, written in the transaction of the act itself."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.core.models import AuditEntry


def reason_require(reason: str) -> str:
    """Return a reason without the space around it; BODY_INVALID when none is given."""
    text = reason.strip()
    if not text:
        raise AppError(ErrorCode.BODY_INVALID, "reason: say why.")
    return text


def audit_record(
    actor: AbstractBaseUser | None, code: str, target: str, data: dict[str, Any] | None = None
) -> AuditEntry:
    """Write down one act. ``actor`` None: the site itself; ``code`` dotted, past tense."""
    return AuditEntry.objects.create(
        actor_id=actor.pk if actor else None,
        actor_name=actor.get_username() if actor else "",
        code=code,
        target=target[:200],
        data=data or {},
    )
