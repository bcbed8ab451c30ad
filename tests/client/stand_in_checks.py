"""How the stand-in site checks a join request: both keys must have signed the challenge."""

import base64
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from training.protocol.claims import DeviceProof
from training.protocol.envelope import EnvelopeError, peek_body, verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_load, key_thumbprint, peer_id_of
from training.protocol.names import TYP_PROOF


def swarm_der(join: dict[str, Any]) -> bytes:
    """Return the swarm public key of a join request."""
    return base64.b64decode(join["swarm_public_key"])


def proof_check(
    join: dict[str, Any], *, run: str, challenges: set[str], now: datetime
) -> ErrorCode | None:
    """Return why a join request is refused, None when both keys are proven."""
    try:
        key = key_load(peek_body(join["device_proof"])["jwk"])
        proof = verify(
            join["device_proof"], typ=TYP_PROOF, model=DeviceProof, keys=[key], now=now
        ).body
    except (EnvelopeError, ValueError, KeyError):
        return ErrorCode.CHALLENGE_INVALID
    der = swarm_der(join)
    names = (proof.run, proof.peer_id, proof.key_thumbprint)
    if names != (run, join["peer_id"], key_thumbprint(der)) or peer_id_of(der) != proof.peer_id:
        return ErrorCode.CHALLENGE_INVALID
    if proof.challenge not in challenges:
        return ErrorCode.CHALLENGE_EXPIRED
    challenges.discard(proof.challenge)
    return None if _is_signed(der, proof) else ErrorCode.CHALLENGE_INVALID


def _is_signed(der: bytes, proof: DeviceProof) -> bool:
    public = serialization.load_der_public_key(der)
    assert isinstance(public, rsa.RSAPublicKey)
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
    try:
        public.verify(
            base64.b64decode(proof.swarm_signature), proof.challenge.encode(), pss, hashes.SHA256()
        )
    except InvalidSignature:
        return False
    return True
