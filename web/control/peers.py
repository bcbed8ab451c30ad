"""The desk's table of peers, and the page of one."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from web.contributions.models import Suspicion
from web.contributions.standing import NEWCOMER, standings_of
from web.control.access import DeskRequest, run_desk
from web.control.audit import audit_rows
from web.control.forms import PeersForm
from web.control.peeracts import acts_of, peer_get
from web.control.peersort import (
    LiveFigures,
    columns_of,
    live_figures,
    peers_page_of,
    sort_of,
)
from web.core.auditing import AuditQuery, audit_search
from web.monitoring.models import Peer
from web.runs.models import BootstrapPeer, Run, RunBar, RunDeviceBar
from web.runs.roles import Right
from web.runs.services import run_bar_is_allowed

HEARTBEAT_FRESH = timedelta(minutes=2)


@run_desk
@require_safe
def peers_page(request: DeskRequest, run: Run) -> HttpResponse:
    """All devices that joined: searched, filtered, sorted and paged on the server."""
    form = PeersForm(request.GET or None)
    query = form.cleaned_data if form.is_bound and form.is_valid() else {}
    sort, live = sort_of(request.GET.get("sort")), live_figures(run)
    page, peers = peers_page_of(run, _found(run, query), sort, request.GET.get("page"), live)
    context = {
        "run": run,
        "form": form,
        "page": page,
        "rows": peer_rows(run, peers, request.rights, live),
        "column": columns_of(sort),
        "sort": sort if "sort" in request.GET else "",
        "rights": request.rights,
    }
    return render(request, "control/peers.html", context)


@run_desk
@require_safe
def peer_page(request: DeskRequest, run: Run, peer: str) -> HttpResponse:
    """One device in the run: what is known, what was said to it, what may be done."""
    known = peer_get(run, peer)
    whole = _with_state(run).select_related("device__user").get(pk=known.pk)
    (row,) = peer_rows(run, [whole], request.rights, live_figures(run))
    may = Right.MODERATE in request.rights
    history = audit_search(AuditQuery(run=run.slug, target=f"/{known.public_id}"))
    of_device = audit_search(AuditQuery(run=run.slug, target=f"/{known.device.public_id}"))
    suspicions = Suspicion.objects.filter(run=run, device=known.device)
    context = {
        "run": run,
        "row": row,
        "peer": row["peer"],
        "acts": acts_of(known, is_held=row["peer"].is_held, is_out=row["peer"].is_out)
        if may
        else [],
        "may_bar": may and not row["peer"].is_barred and run_bar_is_allowed(run, known.device.user),
        "messages_sent": list(known.messages.select_related("sent_by")[:20]),
        "suspicions": list(suspicions.select_related("decided_by")[:20]),
        "audit": audit_rows((history | of_device).distinct()[:20]),
        "rights": request.rights,
    }
    return render(request, "control/peer.html", context)


def peer_rows(
    run: Run, peers: Iterable[Peer], rights: frozenset[Right], live: LiveFigures
) -> list[dict[str, Any]]:
    """Return peers with live figures, pass, addresses and standing, in three queries."""
    rows = list(peers)
    standings = standings_of(run, [peer.device_id for peer in rows])
    addresses = _addresses(run, rows) if Right.ADDRESSES in rights else {}
    now, lifetime = timezone.now(), timedelta(seconds=settings.PASS_LIFETIME_SECONDS)
    found = []
    for peer in rows:
        renewed = peer.heartbeat_at
        found.append(
            {
                "peer": peer,
                "live": live.rows.get(peer.public_id, {}),
                "rate": live.rate(peer.public_id),
                "lag": live.lag(peer.public_id),
                "pass_until": renewed + lifetime if renewed else None,
                "has_pass": bool(renewed and renewed + lifetime > now),
                "is_fresh": bool(renewed and now - renewed < HEARTBEAT_FRESH),
                "standing": standings.get(peer.device_id, NEWCOMER),
                "addresses": addresses.get(peer.peer_id, []),
            }
        )
    return found


def _with_state(run: Run) -> QuerySet[Peer]:
    """Return the run's peers with is_held, is_barred and is_out."""
    opened = Suspicion.objects.filter(
        run=run, device=OuterRef("device"), state=Suspicion.State.OPEN
    )
    return Peer.objects.filter(run=run).annotate(
        is_held=Exists(opened),
        is_barred=Exists(RunBar.objects.filter(run=run, user=OuterRef("device__user"))),
        is_out=Exists(RunDeviceBar.objects.filter(run=run, device=OuterRef("device"))),
    )


def _found(run: Run, query: dict[str, Any]) -> QuerySet[Peer]:
    peers = _with_state(run).select_related("device__user")
    if text := query.get("q"):
        peers = peers.filter(
            Q(device__user__username__icontains=text)
            | Q(device__name__icontains=text)
            | Q(peer_id__icontains=text)
            | Q(hardware__device__icontains=text)
            | Q(trainer_version__startswith=text)
        )
    if role := query.get("role"):
        peers = peers.filter(role=role)
    refused = (
        Q(is_barred=True)
        | Q(is_out=True)
        | Q(device__revoked_at__isnull=False)
        | Q(device__user__banned_at__isnull=False)
    )
    fresh = timezone.now() - HEARTBEAT_FRESH
    match query.get("state"):
        case "here":
            peers = peers.filter(heartbeat_at__gte=fresh).exclude(refused)
        case "silent":
            peers = peers.exclude(refused).filter(Q(heartbeat_at=None) | Q(heartbeat_at__lt=fresh))
        case "paused":
            peers = peers.filter(paused_at__isnull=False)
        case "held":
            peers = peers.filter(Q(is_held=True))
        case "out":
            peers = peers.filter(refused)
    return peers


def _addresses(run: Run, peers: list[Peer]) -> dict[str, list[str]]:
    """Return where the peers were reached lately, by peer id."""
    wanted = {peer.peer_id for peer in peers}
    found: dict[str, list[str]] = {}
    rows = BootstrapPeer.objects.filter(run=run).order_by("-seen_at", "id")
    for address in rows.values_list("address", flat=True)[:5000]:
        peer_id = address.rsplit("/p2p/", 1)[-1]
        if peer_id in wanted and address not in found.setdefault(peer_id, []):
            found[peer_id].append(address)
    return found
