"""Runs, swarms and what their coordinators report; plain functions."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from django.test import Client
from django.utils import timezone
from joserfc.jwk import OKPKey
from pydantic import BaseModel

from tests.factories import bearer, device_make, token_make, user_make
from training.protocol.api import JoinRequest, JoinResponse, SnapshotResponse
from training.protocol.claims import DeviceProof
from training.protocol.envelope import sign
from training.protocol.keys import key_thumbprint, peer_id_of, public_jwk
from training.protocol.metrics import (
    EpochReport,
    EpochSamples,
    EpochWork,
    Hardware,
    PeerMetrics,
    PeerObservation,
    SwarmSnapshot,
)
from training.protocol.names import TRAINER_VERSION, TYP_METRICS, TYP_PROOF, TYP_SNAPSHOT
from training.protocol.rounds import round_seen, rounds_that_fit
from training.protocol.states import Reach, Role
from web.accounts.credentials import Credential, credential_of_token
from web.accounts.models import Device, User
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.models import Peer, RunSwarm
from web.monitoring.services import challenge_issue, peer_join
from web.runs.models import Run, RunConfigVersion
from web.runs.services import run_config_publish, run_create, run_transition

LIFETIME = timedelta(minutes=10)
TARGET = 100


def draft_make(**changes: Any) -> dict[str, Any]:
    """Return a config draft of a small run; top-level fields may be changed."""
    return {
        "task": {"name": "tiny", "params": {"hidden": 8}},
        "swarm": {"target_batch_size": TARGET, "min_peers": 1},
    } | changes


def run_make(
    organiser: User,
    slug: str = "demo",
    *,
    is_open: bool = True,
    is_public: bool = True,
    draft: dict[str, Any] | None = None,
) -> Run:
    """Return a run with a published config, open for an hour unless told otherwise."""
    run = run_create(
        organiser, slug=slug, title=f"The {slug} run", summary="A test.", is_public=is_public
    )
    run_config_publish(organiser, run, draft or draft_make())
    if is_open:
        run_transition(organiser, run, "open")
    run.state_changed_at = timezone.now() - timedelta(hours=1)
    run.save(update_fields=("state_changed_at",))
    return run


def config_publish(run: Run, **changes: Any) -> RunConfigVersion:
    """Publish the next version of a run's config."""
    return run_config_publish(run.organiser, run, draft_make(**changes))


@dataclass
class Volunteer:
    """A device in a run, with its private key."""

    peer: Peer
    device: Device
    key: OKPKey

    @property
    def thumbprint(self) -> str:
        return self.peer.key_thumbprint


@dataclass
class Swarm:
    """A run's coordinator and trainers. ``seq`` is the number of the last snapshot made."""

    run: Run
    coordinator: Device
    coordinator_key: OKPKey
    token: str
    volunteers: list[Volunteer] = field(default_factory=list)
    seq: int = 0

    @property
    def credential(self) -> Credential:
        return credential_of_token(self.token, timezone.now())


def peer_make(run: Run, user: User, name: str = "laptop", **fields: Any) -> Volunteer:
    """Return a new device of ``user`` that has joined the run."""
    device, key = device_make(user, name, trainer_version=TRAINER_VERSION)
    identity = hashlib.sha256(f"{run.slug}/{device.public_id}".encode()).hexdigest()
    now = timezone.now()
    peer = Peer.objects.create(
        **{
            "run": run,
            "device": device,
            "peer_id": f"Qm{identity[:44]}",
            "key_thumbprint": identity,
            "swarm_public_key": "",
            "role": Role.TRAINER,
            "hardware": {"device": "cpu"},
            "trainer_version": TRAINER_VERSION,
            "joined_at": now - timedelta(minutes=30),
            "heartbeat_at": now,
            **fields,
        }
    )
    return Volunteer(peer, device, key)


def swarm_make(run: Run, n_peers: int = 2, *, users: Sequence[User] | None = None) -> Swarm:
    """Return a swarm whose trainers belong to ``users`` in turn (new accounts unless given)."""
    service = User.objects.filter(username="yard").first() or user_make("yard", is_service=True)
    member = peer_make(run, service, "coordinator", role=Role.COORDINATOR)
    RunSwarm.objects.update_or_create(run=run, defaults={"coordinator": member.device})
    token = token_make(service, "coordinator", run_slug=run.slug, device=member.device)
    people = users or [user_make(f"volunteer{i}") for i in range(n_peers)]
    volunteers = [peer_make(run, people[i % len(people)], f"machine {i}") for i in range(n_peers)]
    return Swarm(run, member.device, member.key, token, volunteers)


def signed(body: BaseModel, typ: str, key: OKPKey, now: datetime, **options: Any) -> str:
    """Return ``body`` as a device's JWS."""
    lifetime = options.get("lifetime", LIFETIME)
    return sign(body, typ=typ, key=key, issuer="http://device", lifetime=lifetime, now=now)


def metrics_make(volunteer: Volunteer, now: datetime, **fields: Any) -> PeerMetrics:
    """Return what a trainer says of itself."""
    return PeerMetrics(
        **{
            "run": volunteer.peer.run.slug,
            "lineage": 1,
            "peer_id": volunteer.peer.peer_id,
            "config_version": 1,
            "epoch": 0,
            "samples_accumulated": 10,
            "samples_total": 10,
            "samples_per_second": 5.0,
            "loss": 2.5,
            "trainer_version": TRAINER_VERSION,
            "taken_at": now,
            **fields,
        }
    )


def observation_make(volunteer: Volunteer, now: datetime, **fields: Any) -> PeerObservation:
    """Return how a coordinator saw a trainer. ``jws`` may be given; else it is signed here."""
    jws = fields.pop("jws", None)
    seen_at = fields.pop("seen_at", now)
    metrics = metrics_make(volunteer, seen_at, **fields)
    return PeerObservation(
        key_thumbprint=volunteer.thumbprint,
        peer_id=volunteer.peer.peer_id,
        seen_at=seen_at,
        reach=Reach.DIRECT,
        epoch=metrics.epoch,
        samples_accumulated=metrics.samples_accumulated,
        samples_per_second=metrics.samples_per_second,
        loss=metrics.loss,
        jws=signed(metrics, TYP_METRICS, volunteer.key, seen_at) if jws is None else jws,
    )


def accounts_make(
    swarm: Swarm, volunteer: Volunteer, reports: Sequence[EpochReport]
) -> dict[str, Any]:
    """Return what a trainer that took part signs of these epochs: the newest that fit."""
    known = {v.thumbprint: v.peer.peer_id for v in swarm.volunteers}
    recent, rounds, own = [], [], volunteer.peer.peer_id
    for report in reports:
        samples = {w.key_thumbprint: w.samples for w in report.work}
        if volunteer.thumbprint in samples:
            recent.append(EpochSamples(epoch=report.epoch, samples=samples[volunteer.thumbprint]))
            weights: dict[str, int | None] = {
                known[key]: n
                for key, n in samples.items()
                if key in known and key != volunteer.thumbprint
            }
            seen = round_seen(report.epoch, weights, own=own, group_size=len(weights) + 1)
            rounds.append(seen)
    return {
        "recent": tuple(recent[-32:]),
        "rounds": rounds_that_fit(rounds),
        "samples_total": 10 + sum(item.samples for item in recent),
    }


def report_make(
    swarm: Swarm, epoch: int, now: datetime, samples: int = 50, loss: float | None = 2.0
) -> EpochReport:
    """Return a finished epoch in which everybody had ``samples``."""
    work = tuple(EpochWork(key_thumbprint=v.thumbprint, samples=samples) for v in swarm.volunteers)
    return EpochReport(epoch=epoch, finished_at=now, loss=loss, num_peers=len(work), work=work)


def snapshot_make(swarm: Swarm, now: datetime | None = None, **fields: Any) -> SwarmSnapshot:
    """Return the next snapshot: all trainers seen now, in epoch 0, unless told otherwise.

    ``epoch`` is also the trainers'; ``seq`` is not counted on when given.
    """
    now = now or timezone.now()
    if "seq" not in fields:
        swarm.seq += 1
    epoch = fields.get("epoch", 0)
    peers = fields.pop("peers", None)
    if peers is None:
        reports = fields.get("finished_epochs", ())
        peers = tuple(
            observation_make(v, now, epoch=epoch, **accounts_make(swarm, v, reports))
            for v in swarm.volunteers
        )
    return SwarmSnapshot(
        **{
            "run": swarm.run.slug,
            "lineage": 1,
            "seq": swarm.seq,
            "taken_at": now,
            "epoch": epoch,
            "samples_accumulated": sum(p.samples_accumulated for p in peers),
            "samples_per_second": sum(p.samples_per_second for p in peers),
            "loss": 2.5,
            "peers": peers,
            "bootstrap_peers": ("/ip4/10.0.0.1/tcp/1000/p2p/QmCoordinator",),
            **fields,
        }
    )


def snapshot_sign(swarm: Swarm, snapshot: SwarmSnapshot, now: datetime | None = None) -> str:
    """Return a snapshot as its coordinator signs it."""
    return signed(snapshot, TYP_SNAPSHOT, swarm.coordinator_key, now or snapshot.taken_at)


def snapshot_take(swarm: Swarm, now: datetime | None = None, **fields: Any) -> SnapshotResponse:
    """Ingest the next snapshot without HTTP."""
    now = now or timezone.now()
    jws = snapshot_sign(swarm, snapshot_make(swarm, now, **fields), now)
    return snapshot_ingest(swarm.credential, swarm.run, jws, now)


def snapshot_post(client: Client, swarm: Swarm, jws: str | None = None, **fields: Any) -> Any:
    """Post the next snapshot (or ``jws``) and return the response."""
    body = {"snapshot": jws or snapshot_sign(swarm, snapshot_make(swarm, **fields))}
    return client.post(
        f"/api/v1/runs/{swarm.run.slug}/snapshots/",
        body,
        content_type="application/json",
        headers=bearer(swarm.token),
    )


@lru_cache(maxsize=8)
def swarm_key(number: int = 0) -> rsa.RSAPrivateKey:
    """Return one of a few hivemind keys; making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def swarm_key_der(key: rsa.RSAPrivateKey) -> bytes:
    """Return the public half as DER."""
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def join_request(
    challenge: str,
    device: OKPKey,
    swarm: rsa.RSAPrivateKey,
    *,
    slug: str = "demo",
    proof: dict[str, Any] | None = None,
    **fields: Any,
) -> JoinRequest:
    """Return an answered challenge; fields of the proof or of the request may be changed."""
    der = swarm_key_der(swarm)
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)
    body = DeviceProof(
        **{
            "challenge": challenge,
            "run": slug,
            "peer_id": peer_id_of(der),
            "key_thumbprint": key_thumbprint(der),
            "jwk": public_jwk(device),
            "swarm_signature": base64.b64encode(
                swarm.sign(challenge.encode(), pss, hashes.SHA256())
            ).decode(),
            **(proof or {}),
        }
    )
    return JoinRequest(
        **{
            "peer_id": peer_id_of(der),
            "swarm_public_key": base64.b64encode(der).decode(),
            "device_proof": signed(body, TYP_PROOF, device, timezone.now()),
            "hardware": Hardware(device="cpu", cpus=2),
            "trainer_version": TRAINER_VERSION,
            "device_name": "laptop",
            **fields,
        }
    )


def peer_joined(
    run: Run, user: User, device_key: OKPKey, number: int = 0
) -> tuple[Peer, JoinResponse]:
    """Join as a trainer does, with one of a few swarm keys; return the peer and the answer."""
    now = timezone.now()
    credential = credential_of_token(token_make(user), now)
    challenge = challenge_issue(run, user, now).challenge
    request = join_request(challenge, device_key, swarm_key(number), slug=run.slug)
    answer = peer_join(credential, run, request, now)
    return Peer.objects.get(device__public_id=answer.device_id, run=run), answer
