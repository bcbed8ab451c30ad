"""The numbered list of a run's revoked peers: made anew when it has to change, signed seldom."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from training.protocol.claims import Revocations
from training.protocol.envelope import peek_key_id
from training.protocol.names import TYP_REVOCATIONS
from training.protocol.states import PeerState
from web.accounts.models import Device, User
from web.core.audit import audit_record
from web.core.keys import site_key, site_sign
from web.monitoring.feed import peer_lines
from web.monitoring.live import live_stored, live_write, run_lock
from web.monitoring.models import Peer, RetiredPeer, RevocationList
from web.runs.models import Run, RunBar, RunDeviceBar

logger = logging.getLogger(__name__)
LIFETIME = timedelta(hours=4)
"""Of a signature. It is signed again after half of it, so that each copy that is handed out
outlives the longest time that a swarm does without the site."""
RETIRED_KEPT = timedelta(days=1)
"""An identity that was given up stays on the list until no pass for it can be good any more."""
RETIRED_PER_DEVICE = 50
"""The newest ones; somebody who makes keys without end only forgets their own."""
LISTS_KEPT = 100
_NAMED = 20
"""So many peers are named in the audit log."""


def revocations_update(run: Run, now: datetime) -> RevocationList:
    """Return the run's list as it has to be now; a changed one gets the next number.

    The caller holds the lock of the run, so that numbers only grow.
    """
    newest = run.revocation_lists.order_by("-seq").first()
    wanted = _wanted(run, now)
    if newest is not None and newest.peer_ids == wanted:
        return newest
    before: list[str] = newest.peer_ids if newest else []
    number = newest.seq + 1 if newest else int(bool(wanted))
    made_at = max(now, newest.made_at) if newest else now  # whoever waited for the lock is late
    made = RevocationList.objects.create(run=run, seq=number, peer_ids=wanted, made_at=made_at)
    if wanted != before:
        _change_record(made, before)
    if number > LISTS_KEPT:
        run.revocation_lists.filter(seq__lte=number - LISTS_KEPT).delete()
    return made


def revocations_current(run: Run) -> RevocationList:
    """Return the newest list; the first one is made when it is asked for."""
    newest = run.revocation_lists.order_by("-seq").first()
    if newest is not None:
        return newest
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        return revocations_update(row, timezone.now())


def revocations_signed(revoked: RevocationList, now: datetime) -> str:
    """Return the list as a JWS of the site, signed anew only when half its life is over."""
    is_fresh = revoked.signed_at is not None and now - revoked.signed_at < LIFETIME / 2
    if is_fresh and peek_key_id(revoked.jws) == site_key().thumbprint():
        return revoked.jws
    body = Revocations(run=revoked.run.slug, seq=revoked.seq, peer_ids=tuple(revoked.peer_ids))
    revoked.jws, revoked.signed_at = site_sign(body, TYP_REVOCATIONS, LIFETIME), now
    RevocationList.objects.filter(pk=revoked.pk).update(jws=revoked.jws, signed_at=now)
    return revoked.jws


def revocations_seen(run: Run, revoked: RevocationList, now: datetime, late: int) -> None:
    """Note once that nobody of the swarm (``late`` counts those) is without the list any more."""
    if late or revoked.seen_at is not None:
        return
    revoked.seen_at = now
    RevocationList.objects.filter(pk=revoked.pk).update(seen_at=now)
    if revoked.seq:
        seconds = (now - revoked.made_at).total_seconds()
        logger.info("run %s: revocation list %d is everywhere, %.1f s after it was made",
                    run.slug, revoked.seq, seconds)  # fmt: skip


def peer_id_retire(run: Run, device: Device, peer_id: str, now: datetime) -> None:
    """Note that a device gave up a swarm identity. The caller holds the lock of the run."""
    RetiredPeer.objects.update_or_create(
        run=run, peer_id=peer_id, defaults={"device": device, "retired_at": now}
    )
    own = RetiredPeer.objects.filter(run=run, device=device).order_by("-retired_at", "-pk")
    kept = list(own.values_list("pk", flat=True)[:RETIRED_PER_DEVICE])
    own.exclude(pk__in=kept).delete()


def runs_lock_of(user: User, *others: Run) -> list[Run]:
    """Lock every run that a device of the account ever joined, always in the same order."""
    joined = Peer.objects.filter(device__user=user).values("run")
    runs = Run.objects.filter(Q(pk__in=joined) | Q(pk__in=[run.pk for run in others]))
    return list(runs.select_for_update().order_by("pk"))


def access_changing_lock(user: User, **signal: Any) -> None:
    """Receiver of ``access_changing``."""
    runs_lock_of(user)


def access_changed_revoke(user: User, **signal: Any) -> None:
    """Receiver of ``access_changed``: every run that the account was in has its list checked."""
    for run in runs_lock_of(user):
        _update_and_announce(run)


def run_bars_changed_revoke(run: Run, **signal: Any) -> None:
    """Receiver of ``run_bars_changed``."""
    _update_and_announce(run)


def _update_and_announce(run: Run) -> None:
    """Make the list anew, and show barred peers as barred at once."""
    now = timezone.now()
    revocations_update(run, now)
    row, swarm = run_lock(run)
    _, peers = live_stored(swarm)
    barred = set(peers_barred(row).values_list("public_id", flat=True))
    shown = {
        key: peer.model_copy(update={"state": PeerState.BANNED, "samples_per_second": 0.0})
        if key in barred and peer.state not in (PeerState.LEFT, PeerState.BANNED)
        else peer
        for key, peer in peers.items()
    }
    if shown != peers:
        live_write(row, swarm, now=now, peers=shown, events=peer_lines(peers, shown))


def peers_barred(run: Run) -> QuerySet[Peer]:
    """Return the peers whose account or device is suspended, revoked, or shut out of the run."""
    refused = (
        Q(device__user__banned_at__isnull=False)
        | Q(device__user__is_active=False)
        | Q(device__revoked_at__isnull=False)
        | Q(device__user__in=RunBar.objects.filter(run=run).values("user"))
        | Q(device__in=RunDeviceBar.objects.filter(run=run).values("device"))
    )
    return Peer.objects.filter(refused, run=run)


def _wanted(run: Run, now: datetime) -> list[str]:
    barred = set(peers_barred(run).values_list("peer_id", flat=True))
    retired = RetiredPeer.objects.filter(run=run, retired_at__gt=now - RETIRED_KEPT)
    return sorted(barred | set(retired.values_list("peer_id", flat=True)))


def _change_record(made: RevocationList, before: Sequence[str]) -> None:
    added, removed = set(made.peer_ids) - set(before), set(before) - set(made.peer_ids)
    audit_record(
        None,
        "run.revocations.changed",
        made.run.slug,
        {
            "seq": made.seq,
            "peers": len(made.peer_ids),
            "added": [f"…{peer_id[-8:]}" for peer_id in sorted(added)[:_NAMED]],
            "removed": [f"…{peer_id[-8:]}" for peer_id in sorted(removed)[:_NAMED]],
        },
    )
    logger.info(
        "run %s: revocation list %d: %d peers, %d new, %d let in again",
        *(made.run.slug, made.seq, len(made.peer_ids), len(added), len(removed)),
    )
