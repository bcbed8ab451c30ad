"""Why a machine's work is counted or not: the chain, and its newest entries."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.accounts.selectors import devices_for
from web.contributions.selectors import receipts
from web.core.errors import AppError
from web.monitoring.selectors import Link, why_chain
from web.pages.mine import member_of
from web.runs.models import Run
from web.runs.selectors import run_get_visible

ENTRIES = 20


@dataclass(frozen=True)
class Chain:
    """The checks that were made, and where they stopped."""

    links: list[Link]

    @property
    def stop(self) -> Link | None:
        """The link that does not hold, if any."""
        last = self.links[-1]
        return None if last.ok else last


@login_required
@require_safe
def why_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One machine's chain; ``?device=`` chooses among the visitor's."""
    user = member_of(request)
    run = run_get_visible(user, slug)
    devices = _devices(user, run)
    device = _chosen(devices, request.GET.get("device", ""))
    context = {"run": run, "devices": devices, "device": device}
    if device is not None:
        entries = receipts(device, run)[:ENTRIES]
        context |= {"chain": Chain(why_chain(run, device)), "entries": entries}
    return render(request, "pages/why.html", context)


def _devices(user: User, run: Run) -> list[Device]:
    """Return the machines that joined the run, the one that was seen last first."""
    return list(devices_for(user).filter(peers__run=run))


def _chosen(devices: list[Device], public_id: str) -> Device | None:
    if not public_id:
        return devices[0] if devices else None
    for device in devices:
        if device.public_id == public_id:
            return device
    raise AppError(ErrorCode.NOT_FOUND, "You have no such device in this run.")
