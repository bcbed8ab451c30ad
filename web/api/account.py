"""One's own account and machines."""

from collections import defaultdict

from ninja import Query, Router

from training.protocol.api import DeviceOut
from training.protocol.errors import ErrorCode
from training.protocol.metrics import Hardware
from web.accounts import services
from web.accounts.credentials import Credential
from web.accounts.models import Device
from web.accounts.selectors import device_visible, devices_for
from web.api.auth import AuthedRequest, session_or_token_auth
from web.api.paging import Page, PageQuery, page_of
from web.api.schemas import DeviceName, MeOut
from web.core.errors import AppError
from web.monitoring.models import Peer

router = Router(auth=session_or_token_auth)


@router.get("me/", response=MeOut)
def me(request: AuthedRequest) -> MeOut:
    """Who this token or session belongs to, and what it may do."""
    credential, user = request.auth, request.auth.user
    return MeOut(
        username=user.username,
        email=user.email,
        is_organiser=user.is_staff,
        is_profile_public=user.is_profile_public,
        country=user.country,
        created_at=user.date_joined,
        scopes=sorted(credential.scopes),
        device=credential.device.public_id if credential.device else None,
        run=credential.run_slug or None,
    )


@router.get("me/devices/", response=Page[DeviceOut])
def my_devices(request: AuthedRequest, page: Query[PageQuery]) -> dict[str, object]:
    """One's machines, newest first."""
    devices = devices_for(request.auth.user)
    runs = _runs_by_device(request.auth)
    return page_of(devices, page, order="-id", item=lambda device: _device_out(device, runs))


@router.delete("me/devices/{device_id}/", response={204: None})
def my_device_revoke(request: AuthedRequest, device_id: str) -> None:
    """Take a machine's access away; what it contributed stays."""
    device = _device_of(request.auth, device_id)
    services.device_revoke(request.auth.user, device)


@router.patch("me/devices/{device_id}/", response=DeviceOut)
def my_device_rename(request: AuthedRequest, device_id: str, body: DeviceName) -> DeviceOut:
    """Give a machine another name."""
    device = _device_of(request.auth, device_id)
    services.device_rename(device, body.name)
    return _device_out(device, _runs_by_device(request.auth))


def _device_of(credential: Credential, public_id: str) -> Device:
    device = device_visible(credential.user, public_id)
    if credential.device is not None and credential.device.pk != device.pk:
        raise AppError(ErrorCode.FORBIDDEN, "This token may manage its own device only.")
    return device


def _runs_by_device(credential: Credential) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    peers = Peer.objects.filter(device__user=credential.user).order_by("run__slug")
    for device_id, slug in peers.values_list("device_id", "run__slug"):
        found[device_id].append(slug)
    return found


def _device_out(device: Device, runs: dict[int, list[str]]) -> DeviceOut:
    return DeviceOut(
        id=device.public_id,
        name=device.name,
        hardware=Hardware.model_validate(device.hardware),
        trainer_version=device.trainer_version,
        last_seen=device.last_seen_at,
        created_at=device.created_at,
        revoked=device.is_revoked,
        runs=runs.get(device.pk, []),
    )
