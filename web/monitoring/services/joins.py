"""Joining: proof of both keys, then account, device and peer are bound to each other."""

import base64
import binascii
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from training.protocol.api import JoinRequest, JoinResponse
from training.protocol.claims import DeviceProof, PeerPass
from training.protocol.envelope import EnvelopeError, peek_body
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_load, key_thumbprint, peer_id_of
from training.protocol.names import TYP_PASS, TYP_PROOF
from training.protocol.states import Role, RunState
from training.protocol.versions import is_version_at_least
from web.accounts.credentials import Credential
from web.accounts.devices import device_bind
from web.accounts.models import Device
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.keys import site_sign
from web.monitoring.models import Peer, RetiredPeer, RunSwarm
from web.monitoring.services.challenges import challenge_check
from web.monitoring.services.revocations import (
    peer_id_retire,
    revocations_update,
    runs_lock_of,
)
from web.runs.lifecycle import COORDINATED, JOINABLE, OVER
from web.runs.models import Run, RunConfigVersion, RunMember
from web.runs.request_selectors import approval_require
from web.runs.selectors import (
    bar_refuse,
    bootstrap_addresses,
    checkpoint_latest,
    config_current,
    device_bar_refuse,
    run_is_organised_by,
)
from web.runs.signed import signed_open

_MIN_BITS = 2048


def peer_join(
    credential: Credential, run: Run, request: JoinRequest, now: datetime
) -> JoinResponse:
    """Bind the caller's device and swarm key in this run and hand out config and pass.

    Idempotent per device. A swarm key that was bound to another device of the same account moves
    to this one (the machine was set up anew).

    Raises:
        AppError: BANNED, BARRED, APPROVAL_PENDING, FORBIDDEN, RUN_NOT_OPEN, RUN_OVER,
            CONFIG_MISSING, TRAINER_TOO_OLD, BODY_INVALID, BAD_SIGNATURE, CHALLENGE_INVALID,
            CHALLENGE_EXPIRED, PEER_ID_TAKEN, DEVICE_KEY_MISMATCH or DEVICE_REVOKED.
    """
    if credential.user.is_banned:
        raise AppError(ErrorCode.BANNED, credential.user.ban_text)
    bar_refuse(run, credential.user)
    approval_require(run, credential.user)
    _role_require(credential, run, request.role)
    _open_require(run, request.role)
    config = config_current(run)
    _version_require(config, request.trainer_version)
    proof = _proof_open(run, request, now)
    challenge_check(run, credential.user, proof.challenge, now)
    with transaction.atomic():
        runs_lock_of(credential.user, run)  # a device that comes back leaves several lists
        device = device_bind(
            credential.user,
            jwk=proof.jwk,
            name=request.device_name,
            hardware=request.hardware.model_dump(mode="json"),
            trainer_version=request.trainer_version,
            credential=credential,
            now=now,
        )
        device_bar_refuse(run, device)
        thumbprint, lineage = proof.key_thumbprint, config.lineage
        peer = _peer_bind(run, device, request, thumbprint, lineage=lineage, now=now)
        if request.role is Role.COORDINATOR:
            _coordinator_set(run, device)
        revocations_update(run, now)
    epoch, manifest = _newest_state(run, config)
    return JoinResponse(
        device_id=device.public_id,
        device_name=device.name,
        username=credential.user.username,
        config=config.jws,
        peer_pass=pass_make(peer),
        bootstrap_peers=tuple(bootstrap_addresses(run, peer.peer_id, now=now)),
        min_epoch=epoch,
        checkpoint=manifest,
    )


def _newest_state(run: Run, config: RunConfigVersion) -> tuple[int, str]:
    """Return epoch and manifest of what a newcomer takes over at least; (0, "") for nothing."""
    checkpoint = checkpoint_latest(run, config.lineage)
    if checkpoint is not None:
        return checkpoint.epoch, checkpoint.manifest
    start = config.body.get("start")
    if not start:
        return 0, ""
    origin = run.checkpoints.filter(lineage=start["lineage"], epoch=start["epoch"]).first()
    return int(start["epoch"]), origin.manifest if origin else ""


def pass_make(peer: Peer) -> str:
    """Return a fresh pass for a peer (with ``device.user`` and ``run`` loaded)."""
    claims = PeerPass(
        sub=peer.device.user.username,
        device=peer.device.public_id,
        run=peer.run.slug,
        lineage=peer.lineage,
        peer_id=peer.peer_id,
        key_thumbprint=peer.key_thumbprint,
        role=Role(peer.role),
    )
    return site_sign(claims, TYP_PASS, timedelta(seconds=settings.PASS_LIFETIME_SECONDS))


def _role_require(credential: Credential, run: Run, role: Role) -> None:
    if role is not Role.COORDINATOR:
        return
    may = credential.user.is_service or run_is_organised_by(credential.user, run)
    if "coordinator" not in credential.scopes or not may:
        raise AppError(ErrorCode.FORBIDDEN, "This token does not allow coordinating this run.")


def _open_require(run: Run, role: Role) -> None:
    state = RunState(run.state)
    if state in (COORDINATED if role is Role.COORDINATOR else JOINABLE):
        return
    if state in OVER:
        raise AppError(ErrorCode.RUN_OVER, f"This run was {run.state_reason or 'finished'}.")
    text = f"was {run.state_reason}" if run.state_reason else "is not opened yet"
    raise AppError(ErrorCode.RUN_NOT_OPEN, f"This run {text}.")


def _version_require(config: RunConfigVersion, version: str) -> None:
    wanted = str(config.body["min_trainer_version"])
    if not is_version_at_least(version, wanted):
        raise AppError(
            ErrorCode.TRAINER_TOO_OLD,
            f"This run needs trainer {wanted} or newer; yours is {version[:40] or 'unknown'}.",
        )


def _proof_open(run: Run, request: JoinRequest, now: datetime) -> DeviceProof:
    """Check both signatures and that they speak of the same peer."""
    try:
        key = key_load(dict(peek_body(request.device_proof)["jwk"]))
    except (EnvelopeError, KeyError, TypeError, ValueError) as error:
        raise AppError(
            ErrorCode.BODY_INVALID, "device_proof: no JWS with an Ed25519 jwk inside."
        ) from error
    proof = signed_open(
        request.device_proof, typ=TYP_PROOF, model=DeviceProof, key=key, now=now
    ).body
    swarm_key, der = _swarm_key(request.swarm_public_key)
    if proof.run != run.slug:
        raise AppError(ErrorCode.CHALLENGE_INVALID, f"The proof is for the run {proof.run}.")
    thumbprint = key_thumbprint(der)
    if proof.peer_id != request.peer_id or peer_id_of(der) != request.peer_id:
        raise AppError(ErrorCode.BODY_INVALID, "peer_id: is not the one of swarm_public_key.")
    if proof.key_thumbprint != thumbprint:
        raise AppError(ErrorCode.BODY_INVALID, "device_proof: names another swarm key.")
    _swarm_signature_check(swarm_key, proof)
    return proof


def _swarm_key(text: str) -> tuple[rsa.RSAPublicKey, bytes]:
    try:
        der = base64.b64decode(text, validate=True)
        key = serialization.load_der_public_key(der)
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as error:
        raise AppError(ErrorCode.BODY_INVALID, "swarm_public_key: not a DER key.") from error
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size < _MIN_BITS:
        raise AppError(
            ErrorCode.BODY_INVALID, f"swarm_public_key: RSA of {_MIN_BITS} bits or more is needed."
        )
    same = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    if same != der:  # one key must not have two thumbprints
        raise AppError(ErrorCode.BODY_INVALID, "swarm_public_key: not a SubjectPublicKeyInfo.")
    return key, der


def _swarm_signature_check(key: rsa.RSAPublicKey, proof: DeviceProof) -> None:
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
    try:
        signature = base64.b64decode(proof.swarm_signature, validate=True)
        key.verify(signature, proof.challenge.encode(), pss, hashes.SHA256())
    except (binascii.Error, ValueError, InvalidSignature) as error:
        raise AppError(
            ErrorCode.CHALLENGE_INVALID, "The swarm key did not sign this challenge."
        ) from error


def _peer_bind(
    run: Run,
    device: Device,
    request: JoinRequest,
    thumbprint: str,
    *,
    lineage: int,
    now: datetime,
) -> Peer:
    same_key = Q(key_thumbprint=thumbprint) | Q(peer_id=request.peer_id)
    holders = Peer.objects.filter(same_key).select_related("device")
    if any(holder.device.user_id != device.user_id for holder in holders):
        raise AppError(ErrorCode.PEER_ID_TAKEN)
    here = next((holder for holder in holders if holder.run_id == run.pk), None)
    before = Peer.objects.filter(run=run, device=device).first()
    if here is not None and before is not None and here.pk != before.pk:
        peer_id_retire(run, device, before.peer_id, now)
        before.delete()  # the device takes over the identity that the other one had
    peer = here or before or Peer(run=run, joined_at=now)
    is_new = peer.pk is None
    if not is_new and peer.peer_id != request.peer_id:
        peer_id_retire(run, device, peer.peer_id, now)
    RetiredPeer.objects.filter(run=run, peer_id=request.peer_id).delete()  # in use again
    if not is_new and peer.device_id != device.pk:
        audit_record(device.user, "peer.moved", run.slug, {"to": device.public_id})
    peer.device = device
    peer.peer_id, peer.key_thumbprint = request.peer_id, thumbprint
    peer.swarm_public_key = request.swarm_public_key
    peer.role, peer.lineage = request.role, lineage
    peer.hardware = request.hardware.model_dump(mode="json")
    peer.trainer_version = request.trainer_version
    peer.heartbeat_at = now
    peer.run = run
    peer.save()
    if is_new:
        audit_record(
            device.user, "peer.joined", run.slug, {"device": device.public_id, "role": peer.role}
        )
        RunMember.objects.get_or_create(
            run=run, user=device.user, defaults={"part": RunMember.Part.VOLUNTEER}
        )
    return peer


def _coordinator_set(run: Run, device: Device) -> None:
    """The coordinator that joined last is the one whose snapshots count."""
    swarm, _ = RunSwarm.objects.get_or_create(run=run)
    if swarm.coordinator_id == device.pk:
        return
    swarm.coordinator, swarm.last_seq = device, 0  # each coordinator numbers for itself
    swarm.save(update_fields=("coordinator", "last_seq"))
    audit_record(device.user, "run.coordinator.changed", run.slug, {"device": device.public_id})
