"""The device's swarm key: the RSA key by which the swarm knows this peer.

One RSA-2048 key is the libp2p identity file and the key that signs hivemind's records, so
that the peer id in a pass, in a record and on the wire are the same. The file is a libp2p
``PrivateKey`` protobuf (field 1: key type, RSA = 0; field 2: PKCS#1 DER), as p2pd reads it.
"""

import base64
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from training.client.errors import store_error
from training.client.files import file_write
from training.protocol.keys import key_thumbprint, peer_id_of

_HEADER = b"\x08\x00\x12"
"""key_type = RSA, then the tag of the length-delimited ``data`` field."""


@dataclass(frozen=True)
class SwarmKey:
    """An RSA key with the names that others derive from it."""

    path: Path
    private_der: bytes
    """PKCS#1 (traditional) DER."""
    public_der: bytes
    """SubjectPublicKeyInfo DER."""

    @property
    def peer_id(self) -> str:
        """libp2p peer id, base58."""
        return peer_id_of(self.public_der)

    @property
    def thumbprint(self) -> str:
        """Hexadecimal SHA-256 of :attr:`public_der`."""
        return key_thumbprint(self.public_der)

    @property
    def public_base64(self) -> str:
        """:attr:`public_der` in base64, as a join request carries it."""
        return base64.b64encode(self.public_der).decode()

    def sign(self, text: str) -> str:
        """Return the base64 RSA-PSS (SHA-256) signature, as hivemind makes it."""
        key = _private_key(self.private_der)
        pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
        return base64.b64encode(key.sign(text.encode(), pss, hashes.SHA256())).decode()


def swarm_key_load_or_create(path: Path) -> SwarmKey:
    """Return the key in the identity file, made with mode 0400 when there is none.

    Raises:
        ClientError: the file is there but is not an RSA identity.
    """
    if not path.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        der = key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        file_write(path, _HEADER + _varint(len(der)) + der, mode=0o400)
    return _load(path)


def _load(path: Path) -> SwarmKey:
    try:
        der = _data_field(path.read_bytes())
        key = _private_key(der)
    except (OSError, ValueError, IndexError) as error:
        raise store_error(
            f"{path} is not a swarm identity ({error})",
            f"Delete {path}; a new identity is made at the next start.",
        ) from error
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SwarmKey(path=path, private_der=der, public_der=public)


@lru_cache(maxsize=4)
def _private_key(der: bytes) -> rsa.RSAPrivateKey:
    """Load and check a key; the check takes longer than everything else in a heartbeat."""
    key = serialization.load_der_private_key(der, password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def _data_field(message: bytes) -> bytes:
    if not message.startswith(_HEADER):
        raise ValueError("not an RSA PrivateKey protobuf")
    length, shift, at = 0, 0, len(_HEADER)
    while True:
        byte = message[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if len(message) != at + length:
        raise ValueError("cut short")
    return message[at:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
