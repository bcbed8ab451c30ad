"""Calls of trainers and of the people behind them."""

from typing import Any

from django.utils import timezone
from ninja import Query, Router

from training.protocol.api import (
    Challenge,
    JoinRequest,
    JoinResponse,
    PassRequest,
    PassResponse,
    ReceiptOut,
    WhyLink,
    WhyOut,
)
from training.protocol.errors import ErrorCode
from web.accounts.models import Device
from web.accounts.selectors import device_visible, devices_for
from web.api.auth import AuthedRequest, device_auth, session_or_token_auth
from web.api.paging import Page, PageQuery, page_of
from web.api.rows import receipt_out
from web.contributions.selectors import receipts as receipts_of
from web.core.errors import AppError
from web.core.ratelimit import rate_limit
from web.monitoring.selectors import why_chain
from web.monitoring.services import challenge_issue, peer_heartbeat, peer_join
from web.runs.models import Run
from web.runs.selectors import run_get_visible

router = Router(auth=device_auth)
_JOINS = "60/m/user"


@router.get("runs/{slug}/challenge/", response=Challenge)
def challenge(request: AuthedRequest, slug: str) -> Challenge:
    """A text to sign with the device key and the swarm key; good once, for five minutes."""
    run = run_get_visible(request.auth.user, slug)
    _rate_limit(request, "challenge")
    return challenge_issue(run, request.auth.user, timezone.now())


@router.post("runs/{slug}/join/", response=JoinResponse, by_alias=True)
def join(request: AuthedRequest, slug: str, body: JoinRequest) -> JoinResponse:
    """Bind this device and its swarm key; answers config, pass and addresses. Idempotent."""
    run = run_get_visible(request.auth.user, slug)
    _rate_limit(request, "join")
    return peer_join(request.auth, run, body, timezone.now())


@router.post("runs/{slug}/pass/", response=PassResponse, by_alias=True)
def peer_pass(request: AuthedRequest, slug: str, body: PassRequest) -> PassResponse:
    """The heartbeat: says what the trainer does; answers a fresh pass and commands."""
    run = run_get_visible(request.auth.user, slug)
    return peer_heartbeat(request.auth, run, body, timezone.now())


@router.get("runs/{slug}/receipts/", response=Page[ReceiptOut])
def receipts(request: AuthedRequest, slug: str, page: Query[PageQuery]) -> dict[str, Any]:
    """What was counted for this device and what was not, newest first, signed."""
    run = run_get_visible(request.auth.user, slug)
    if request.auth.device is None:
        raise AppError(ErrorCode.NOT_JOINED)
    return page_of(receipts_of(request.auth.device, run), page, order="-id", item=receipt_out)


@router.get("runs/{slug}/why/", response=WhyOut, auth=session_or_token_auth)
def why(request: AuthedRequest, slug: str, device: str = "") -> WhyOut:
    """Whether this device is counted; if not, the first broken link and its remedy.

    `device`: public id; by default the token's own, or the one that joined last.
    """
    run = run_get_visible(request.auth.user, slug)
    chain = why_chain(run, _device(request, run, device))
    links = (WhyLink(code=x.step, ok=x.ok, text=x.text, remedy=x.remedy) for x in chain)
    return WhyOut(links=tuple(links))


def _device(request: AuthedRequest, run: Run, public_id: str) -> Device:
    if public_id:
        return device_visible(request.auth.user, public_id)
    if request.auth.device is not None:
        return request.auth.device
    own = devices_for(request.auth.user)
    device = own.filter(peers__run=run).order_by("-peers__joined_at").first() or own.first()
    if device is None:
        raise AppError(ErrorCode.NOT_JOINED)
    return device


def _rate_limit(request: AuthedRequest, scope: str) -> None:
    if not request.auth.user.is_service:  # the site's own machines share one account
        rate_limit(request, scope, _JOINS)
