"""Signed messages: JWS compact strings (RFC 7515), Ed25519 only (RFC 9864).

The string that was signed is the string that is stored and passed on: nothing is ever
serialised again. A verifier names the one ``typ`` it expects, so that a pass can never be
taken for a config.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey
from joserfc.jws import JWSRegistry
from pydantic import BaseModel

from training.protocol.errors import ErrorCode
from training.protocol.names import JWS_ALGORITHM

T = TypeVar("T", bound=BaseModel)
_CLAIMS = ("iss", "iat", "exp", "jti")
CLOCK_LEEWAY = timedelta(seconds=60)
"""A message dated further in the future than this is refused."""
MAX_PAYLOAD = 8_000_000
"""Characters; a snapshot of thousands of peers, each with its own signed message, is large."""
_UNREADABLE = (JoseError, ValueError, TypeError, AttributeError, RecursionError)
"""What the JOSE and JSON readers raise for bytes that somebody made up: a ``crit`` that is no list
is a TypeError to them, and deep nesting a RecursionError."""
_NUL = b"\\u0000"
"""As JSON writes it: PostgreSQL keeps no text with it, and no honest name has it."""


def _registry() -> JWSRegistry:
    registry = JWSRegistry(algorithms=[JWS_ALGORITHM])
    registry.max_payload_length = MAX_PAYLOAD
    return registry


_REGISTRY = _registry()


class EnvelopeError(Exception):
    """A signed message was refused; ``code`` says why."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Signed(Generic[T]):
    """A message whose signature, type and expiry were checked."""

    body: T
    issuer: str
    issued_at: datetime
    expires_at: datetime
    message_id: str
    key_id: str
    token: str


def sign(
    body: BaseModel, *, typ: str, key: OKPKey, issuer: str, lifetime: timedelta, now: datetime
) -> str:
    """Return ``body`` as a JWS that is valid for ``lifetime`` from ``now``."""
    payload: dict[str, Any] = body.model_dump(mode="json", by_alias=True)
    payload |= {
        "iss": issuer,
        "iat": int(now.timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "jti": secrets.token_urlsafe(12),
    }
    header = {"alg": JWS_ALGORITHM, "kid": key.thumbprint(), "typ": typ}
    data = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return jws.serialize_compact(header, data.encode(), key, algorithms=[JWS_ALGORITHM])


def verify(
    token: str, *, typ: str, model: type[T], keys: Iterable[OKPKey], now: datetime
) -> Signed[T]:
    """Return the checked message.

    Raises:
        EnvelopeError: not a JWS, wrong ``alg`` or ``typ``, unknown ``kid``, bad signature,
            expired, dated in the future, or a body that does not fit ``model``.
    """
    header = _header(token)
    if header.get("alg") != JWS_ALGORITHM:
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, f"alg must be {JWS_ALGORITHM}")
    if header.get("typ") != typ:
        raise EnvelopeError(
            ErrorCode.BAD_SIGNATURE, f"expected {typ}, got {str(header.get('typ'))[:60]!r}"
        )
    key = next((k for k in keys if k.thumbprint() == header.get("kid")), None)
    if key is None:
        raise EnvelopeError(ErrorCode.UNKNOWN_KEY, f"unknown kid {str(header.get('kid'))[:60]!r}")
    try:
        checked = jws.deserialize_compact(token, key, registry=_REGISTRY)
    except _UNREADABLE as error:
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, f"bad signature: {error}") from error
    return _open(checked.payload, model=model, key_id=str(header["kid"]), token=token, now=now)


def peek_key_id(token: str) -> str:
    """Return the ``kid`` of a message that is not verified yet ('' when there is none)."""
    return str(_header(token).get("kid", ""))


def peek_type(token: str) -> str:
    """Return the ``typ`` of a message that is not verified yet ('' when there is none)."""
    return str(_header(token).get("typ", ""))


def peek_body(token: str) -> dict[str, Any]:
    """Return the payload WITHOUT checking the signature: for looking up the right key only."""
    _header(token)
    try:
        payload = json.loads(jws.extract_compact(token.encode(), registry=_REGISTRY).payload)
    except _UNREADABLE as error:
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, "the payload is not JSON") from error
    if not isinstance(payload, dict):
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, "the payload is not an object")
    return payload


def _header(token: str) -> dict[str, Any]:
    try:
        return dict(jws.extract_compact(token.encode(), registry=_REGISTRY).headers())
    except _UNREADABLE as error:
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, "this is not a JWS compact string") from error


def _open(
    payload: bytes | None, *, model: type[T], key_id: str, token: str, now: datetime
) -> Signed[T]:
    if _NUL in (payload or b""):
        raise EnvelopeError(ErrorCode.BODY_INVALID, "the signed body has a NUL character in it")
    try:
        data = json.loads(payload or b"")
        issuer, issued, expires, message_id = (data.pop(name) for name in _CLAIMS)
        issued_at = datetime.fromtimestamp(int(issued), UTC)
        expires_at = datetime.fromtimestamp(int(expires), UTC)
        body = model.model_validate_json(json.dumps(data))
    except (*_UNREADABLE, KeyError, OverflowError, OSError) as error:
        raise EnvelopeError(
            ErrorCode.BODY_INVALID, f"the signed body does not fit: {error}"
        ) from error
    if expires_at <= now:
        raise EnvelopeError(ErrorCode.ENVELOPE_EXPIRED, f"expired at {expires_at.isoformat()}")
    if issued_at > now + CLOCK_LEEWAY:
        raise EnvelopeError(
            ErrorCode.ENVELOPE_EXPIRED, f"dated {issued_at.isoformat()}, in the future"
        )
    return Signed(body, str(issuer), issued_at, expires_at, str(message_id), key_id, token)
