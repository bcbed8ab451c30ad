"""Opens what devices signed; refusals come out as errors of the site."""

from datetime import datetime
from typing import TypeVar

from joserfc.jwk import OKPKey
from pydantic import BaseModel

from training.protocol.envelope import EnvelopeError, Signed, verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_load
from web.accounts.models import Device
from web.core.errors import AppError

T = TypeVar("T", bound=BaseModel)


def device_key(device: Device) -> OKPKey:
    """Return a device's public key."""
    return key_load(device.jwk)


def signed_open(token: str, *, typ: str, model: type[T], key: OKPKey, now: datetime) -> Signed[T]:
    """Return the checked message that the holder of ``key`` signed.

    Raises:
        AppError: BAD_SIGNATURE, UNKNOWN_KEY, ENVELOPE_EXPIRED or BODY_INVALID.
    """
    try:
        return verify(token, typ=typ, model=model, keys=[key], now=now)
    except EnvelopeError as error:
        detail = error.detail.splitlines()[0] if error.detail else ""
        raise AppError(ErrorCode(error.code), detail[:300]) from error
