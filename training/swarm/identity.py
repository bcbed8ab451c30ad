"""One RSA key per peer: libp2p identity, signer of DHT records, owner of progress reports.

hivemind would make a second key of its own for records; with one key the peer id of a pass,
the owner of a record and the name on the wire are provably the same peer.
"""

import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.utils.crypto import RSAPrivateKey

from training.client.swarm_key import SwarmKey

_OWNER = re.compile(RSASignatureValidator.PUBLIC_KEY_REGEX)


def rsa_key(swarm_key: SwarmKey) -> RSAPrivateKey:
    """Return the swarm key as hivemind's own class, without generating another key."""
    key = RSAPrivateKey.__new__(RSAPrivateKey)
    key.__setstate__({"_private_key": swarm_key.private_der})
    return key


def owner_subkey(swarm_key: SwarmKey) -> bytes:
    """Return the DHT subkey under which only this key may write: ``[owner:ssh-rsa …]``."""
    subkey: bytes = RSASignatureValidator(rsa_key(swarm_key)).local_public_key
    return subkey


def owner_public_der(subkey: bytes) -> bytes | None:
    """Return the public key (DER, SubjectPublicKeyInfo) that owns a subkey, None if none does."""
    found = _OWNER.findall(subkey)
    if len(found) != 1:
        return None
    try:
        key = serialization.load_ssh_public_key(found[0])
    except (ValueError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, rsa.RSAPublicKey):
        return None
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
