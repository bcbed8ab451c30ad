"""The page of one peer: what the site knows of it, as far as everybody may know it."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.names import public_name
from web.contributions.selectors import device_sums, receipts
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.monitoring.observed import SITE_NAME
from web.monitoring.selectors import live_state, peer_events, peer_visible
from web.pages.charts import polyline
from web.pages.peersview import rows_all
from web.runs.models import Run
from web.runs.selectors import run_get_visible

PAGE_ROWS: Final = 50
_MAX_DIGITS: Final = 15


@require_safe
def peer_page(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """One peer now, when it came and went, and what was counted for it, epoch by epoch."""
    run = run_get_visible(request.user, slug)
    state = live_state(run, request.user)
    live = next((row for row in rows_all(state) if row["key"] == key), None)
    peer = peer_visible(run, key)
    if live is None and peer is None:
        raise AppError(ErrorCode.NOT_FOUND, "No peer of this run has this address.")
    context: dict[str, Any] = {
        "run": run,
        "live": live,
        "peer": peer,
        "title": _title(live, peer, request),
        "is_open": False,
    }
    if peer is not None and _is_open(peer, request):
        context |= {"is_open": True, "events": peer_events(run, key)} | _ledger(request, run, peer)
    return render(request, "pages/run_peer.html", context)


def _is_open(peer: Peer, request: HttpRequest) -> bool:
    """Whether the viewer may read the history: it belongs to somebody with a public profile."""
    user: User = peer.device.user
    return user.is_profile_public or user == request.user


def _title(live: dict[str, Any] | None, peer: Peer | None, request: HttpRequest) -> str:
    if peer is None:
        return str(live["name"]) if live else ""
    user = peer.device.user
    name = SITE_NAME if user.is_service else public_name(user, request.user)
    return f"{name} · {peer.device.name}" if _is_open(peer, request) else name


def _ledger(request: HttpRequest, run: Run, peer: Peer) -> dict[str, Any]:
    before = request.GET.get("before", "")
    rows = receipts(peer.device, run)
    if before.isdecimal() and len(before) <= _MAX_DIGITS:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE_ROWS + 1])
    entries = found[:PAGE_ROWS]
    for entry in entries:
        entry.counted = entry.samples + entry.corrected  # type: ignore[attr-defined]
    samples = [entry.samples for entry in reversed(entries)]
    return {
        "entries": entries,
        "sums": device_sums(peer.device, run),
        "older": entries[-1].pk if len(found) > PAGE_ROWS else None,
        "line": polyline(samples, width=1000, height=90, floor=0),
    }
