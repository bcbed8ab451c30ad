"""Reading the audit log: searched, and walked along to see whether its chain holds."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from web.core.audit import HEAD, audit_record
from web.core.chain import Break, Link, content_of, first_break
from web.core.models import AuditCheck, AuditEntry, AuditHead

CHECKS_KEPT = 400
_CHUNK = 2000
_CONTENT = ("seq", "at", "actor_id", "actor_name", "code", "target", "run", "data")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AuditQuery:
    """What to show; empty fields ask for nothing."""

    text: str = ""
    """In act, object or person."""
    actor: str = ""
    code: str = ""
    """Begins with it: ``run.`` or ``run.state.changed``."""
    target: str = ""
    """Has it in it."""
    run: str = ""
    since: datetime | None = None
    until: datetime | None = None


def audit_search(query: AuditQuery) -> QuerySet[AuditEntry]:
    """Return the acts that fit, the newest first."""
    entries = AuditEntry.objects.order_by("-id")
    if query.text:
        entries = entries.filter(
            Q(code__icontains=query.text)
            | Q(target__icontains=query.text)
            | Q(actor_name__icontains=query.text)
        )
    if query.actor:
        entries = entries.filter(actor_name="" if query.actor == "site" else query.actor)
    if query.code:
        entries = entries.filter(code__startswith=query.code)
    if query.target:
        entries = entries.filter(target__icontains=query.target)
    if query.run:
        entries = entries.filter(run=query.run)
    if query.since:
        entries = entries.filter(at__gte=query.since)
    if query.until:
        entries = entries.filter(at__lt=query.until)
    return entries


def audit_row(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as exports write it: enough to compute its hash again."""
    return {
        "seq": entry.seq,
        "at": entry.at.isoformat(timespec="microseconds"),
        "actor_id": entry.actor_id,
        "actor_name": entry.actor_name,
        "code": entry.code,
        "target": entry.target,
        "run": entry.run,
        "data": entry.data,
        "previous": entry.previous,
        "hash": entry.hash,
    }


def audit_check(now: datetime) -> AuditCheck:
    """Walk along the whole chain; write down and return what was found."""
    known = dict(
        AuditCheck.objects.filter(broken_seq=None, num_entries__gt=0)
        .values_list("num_entries", "head")[:CHECKS_KEPT]
    )  # fmt: skip
    # Read first: entries that are added during the walk lie beyond it.
    row = AuditHead.objects.filter(pk=HEAD).first()
    head = (row.seq, row.hash) if row else (0, "")
    broken = first_break(_links(head[0]), head=head, known=known) or _beyond(head, known)
    check = AuditCheck.objects.create(
        at=now,
        num_entries=head[0],
        head=head[1],
        broken_seq=broken.seq if broken else None,
        text=broken.text if broken else "",
    )
    _say(check)
    old = AuditCheck.objects.order_by("-pk").values_list("pk", flat=True)[CHECKS_KEPT:]
    AuditCheck.objects.filter(pk__in=list(old)).delete()
    return check


def audit_check_newest() -> AuditCheck | None:
    """Return what the last walk along the chain found."""
    return AuditCheck.objects.order_by("-pk").first()


def _links(last: int) -> Iterator[Link]:
    rows = AuditEntry.objects.filter(seq__lte=last).order_by("seq")
    for row in rows.iterator(chunk_size=_CHUNK):
        content = content_of(**{name: getattr(row, name) for name in _CONTENT})
        yield Link(row.seq, row.previous, row.hash, content)


def _beyond(head: tuple[int, str], known: Mapping[int, str]) -> Break | None:
    """Return a break when earlier checks saw a longer chain."""
    longest = max(known, default=0)
    if longest > head[0]:
        text = f"the chain ends at entry {head[0]}, but an earlier check saw {longest}"
        return Break(head[0] + 1, text)
    return None


def _say(check: AuditCheck) -> None:
    if check.broken_seq is None:
        logger.info("audit log: %d entries hold, the last is %s", check.num_entries, check.head)
        return
    logger.error("audit log: the chain is broken: %s", check.text)
    data = {"reason": check.text, "seq": check.broken_seq}
    audit_record(None, "audit.chain.broken", f"entry {check.broken_seq}", data)
