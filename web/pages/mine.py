"""What belongs to the visitor: machines, their lights, their samples."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState, Role
from web.accounts.models import Device, User
from web.accounts.selectors import devices_for
from web.contributions.models import LedgerEntry
from web.core.errors import AppError
from web.monitoring.models import Peer, PeerMessage
from web.runs.models import Run

HEARTBEAT_FRESH = timedelta(seconds=120)
"""Heartbeats come every 30 s by default; three may be lost."""
SWARM_FRESH = timedelta(seconds=60)
MESSAGES_SHOWN = timedelta(days=14)


@dataclass(frozen=True)
class StripDevice:
    """One of the visitor's machines in one run, with its lights."""

    device: Device
    heartbeat_at: datetime | None
    seen_at: datetime | None
    has_heartbeat: bool
    is_in_swarm: bool
    samples: int


@dataclass
class DeviceRow:
    """One of the visitor's machines over all runs."""

    device: Device
    runs: list[Run] = field(default_factory=list)
    samples: int = 0


def member_of(request: HttpRequest) -> User:
    """Return the visitor's account; for views behind ``login_required``."""
    if not isinstance(request.user, User):
        raise AppError(ErrorCode.NOT_AUTHENTICATED)
    return request.user


def strip_devices(user: User | AnonymousUser, run: Run) -> list[StripDevice]:
    """Return the visitor's machines that joined the run and still have access."""
    if not user.is_authenticated:
        return []
    now = timezone.now()
    counted = Q(device__ledger__run=run, device__ledger__state=CreditState.CONFIRMED)
    peers = (
        Peer.objects.filter(run=run, device__user=user, device__revoked_at=None, role=Role.TRAINER)
        .select_related("device")
        .annotate(samples=Coalesce(Sum("device__ledger__samples", filter=counted), 0))
    )
    rows = [
        StripDevice(
            device=peer.device,
            heartbeat_at=peer.heartbeat_at,
            seen_at=peer.seen_at,
            has_heartbeat=_is_fresh(peer.heartbeat_at, now, HEARTBEAT_FRESH),
            is_in_swarm=_is_fresh(peer.seen_at, now, SWARM_FRESH),
            samples=peer.samples,
        )
        for peer in peers
    ]
    return sorted(rows, key=lambda row: (not row.is_in_swarm, not row.has_heartbeat, -row.samples))


def device_rows(user: User) -> list[DeviceRow]:
    """Return the visitor's machines with their runs and samples, in three queries."""
    rows = {device.pk: DeviceRow(device) for device in devices_for(user)}
    for peer in Peer.objects.filter(device__user=user).select_related("run"):
        if peer.device_id in rows:
            rows[peer.device_id].runs.append(peer.run)
    for device_id, samples in _samples_by_device(user).items():
        if device_id in rows:
            rows[device_id].samples = samples
    return list(rows.values())


def messages_for(user: User) -> list[PeerMessage]:
    """Return what moderators lately wrote to the visitor's machines, the newest first."""
    rows = PeerMessage.objects.filter(peer__device__user=user).select_related(
        "sent_by", "peer__run", "peer__device"
    )
    return list(rows.filter(sent_at__gte=timezone.now() - MESSAGES_SHOWN)[:20])


def _samples_by_device(user: User) -> dict[int, int]:
    entries = LedgerEntry.objects.filter(user=user, state=CreditState.CONFIRMED)
    return dict(entries.order_by().values_list("device_id").annotate(total=Sum("samples")))


def _is_fresh(at: datetime | None, now: datetime, limit: timedelta) -> bool:
    return at is not None and now - at <= limit
