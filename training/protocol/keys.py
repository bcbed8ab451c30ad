"""Ed25519 keys as JWK (RFC 8037) and the identity that hivemind derives from an RSA key."""

import hashlib
import json
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LIBP2P_RSA = b"\x08\x00"
_MULTIHASH_SHA256 = b"\x12\x20"


def key_generate() -> OKPKey:
    """Return a new private key whose thumbprint can be an argument of a command.

    One key in 64 has a thumbprint that begins with a dash and would be read as an option.
    """
    while (key := OKPKey.generate_key("Ed25519")).thumbprint().startswith("-"):
        pass
    return key


def key_dump(key: OKPKey) -> str:
    """Return the private key as JSON, for a file of mode 0600."""
    return json.dumps(key.as_dict(private=True))


def key_load(data: str | dict[str, Any]) -> OKPKey:
    """Return a key from JWK JSON, private or public.

    Raises:
        ValueError: not an Ed25519 JWK.
    """
    try:
        key = OKPKey.import_key(json.loads(data) if isinstance(data, str) else data)
        if key.as_dict(private=False).get("crv") != "Ed25519":
            raise ValueError("not an Ed25519 key")
    except (JoseError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not an Ed25519 JWK: {error}") from error
    return key


def public_jwk(key: OKPKey) -> dict[str, str]:
    """Return the public half as JWK, with ``kid`` (RFC 7638 thumbprint), ``alg`` and ``use``."""
    public = {k: str(v) for k, v in key.as_dict(private=False).items()}
    return public | {"kid": key.thumbprint(), "alg": "Ed25519", "use": "sig"}


def key_thumbprint(rsa_public_der: bytes) -> str:
    """Return the hexadecimal SHA-256 of an RSA public key (DER, SubjectPublicKeyInfo)."""
    return hashlib.sha256(rsa_public_der).hexdigest()


def peer_id_of(rsa_public_der: bytes) -> str:
    """Return the libp2p peer id (base58) of an RSA public key (DER, SubjectPublicKeyInfo)."""
    message = _LIBP2P_RSA + b"\x12" + _varint(len(rsa_public_der)) + rsa_public_der
    return _base58(_MULTIHASH_SHA256 + hashlib.sha256(message).digest())


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _base58(data: bytes) -> str:
    number, out = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        out = _BASE58[digit] + out
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + out
