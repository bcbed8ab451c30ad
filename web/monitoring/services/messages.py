"""Messages to the people behind peers: sent from the desk, shown by their trainers."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from training.protocol.api import PeerNote
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.monitoring.models import Peer, PeerMessage
from web.monitoring.services.commands import peer_lock

MAX_TEXT = 500
MAX_WAITING = 5
"""Not yet shown, of one peer; then the sender is told to wait."""
KEPT = 50
"""Of one peer; older ones are forgotten (the audit log keeps them)."""


@transaction.atomic
def peer_message_send(actor: User, peer: Peer, text: str) -> PeerMessage:
    """Leave a message for the peer's next heartbeat; its owner sees it on the site at once.

    Line breaks and characters that only programs obey become blanks.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (empty, too long, or too many wait already).
    """
    row = peer_lock(actor, peer)
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not plain or len(plain) > MAX_TEXT:
        raise AppError(ErrorCode.BODY_INVALID, f"text: 1 to {MAX_TEXT} characters are needed.")
    if row.messages.filter(shown_at=None).count() >= MAX_WAITING:
        detail = f"{MAX_WAITING} messages wait for this trainer already; it has not called."
        raise AppError(ErrorCode.BODY_INVALID, detail)
    message = PeerMessage.objects.create(
        peer=row, text=plain, sent_by=actor, sent_at=timezone.now()
    )
    oldest = row.messages.order_by("-pk").values_list("pk", flat=True)[KEPT:]
    PeerMessage.objects.filter(pk__in=list(oldest)).delete()
    audit_record(
        actor, "peer.message.sent", f"{peer.run.slug}/{peer.public_id}", {"text": message.text}
    )
    return message


def peer_messages_take(peer: Peer, seen: int, now: datetime) -> tuple[PeerNote, ...]:
    """Note which messages were shown; return those that still are to be, the oldest first."""
    waiting = list(peer.messages.filter(shown_at=None).select_related("sent_by").order_by("pk"))
    shown = [message.pk for message in waiting if message.pk <= seen]
    if shown:
        PeerMessage.objects.filter(pk__in=shown).update(shown_at=now)
    return tuple(
        PeerNote(
            id=message.pk,
            text=message.text,
            sender=message.sent_by.get_username() if message.sent_by else "",
            sent_at=message.sent_at,
        )
        for message in waiting[:MAX_WAITING]
        if message.pk > seen
    )
