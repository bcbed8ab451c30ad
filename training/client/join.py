"""Joining a run: trust, proof of both keys, signed config and pass, the config's files."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from training.client.artifacts import artifact_fetch
from training.client.errors import ClientError, trust_error
from training.client.files import file_write, folder_make
from training.client.http import PlatformClient
from training.client.signed import config_verify, pass_verify
from training.client.store import Home
from training.client.trust import Trust, trust_update
from training.protocol.api import Challenge, ConfigOut, JoinRequest, JoinResponse
from training.protocol.claims import CheckpointManifest, DeviceProof, PeerPass
from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, Signed, peek_body, sign
from training.protocol.errors import ErrorCode
from training.protocol.keys import public_jwk
from training.protocol.metrics import Hardware
from training.protocol.names import TRAINER_VERSION, TYP_PROOF
from training.protocol.states import Role

_PROOF_LIFETIME = timedelta(minutes=5)


@dataclass(frozen=True)
class Admission:
    """What a device holds after joining a run."""

    config: Signed[RunConfig]
    peer_pass: Signed[PeerPass]
    artifacts: Path
    """Folder with the config's files, named by their hashes, all checked."""
    bootstrap_peers: tuple[str, ...]
    min_epoch: int
    checkpoint: CheckpointManifest | None
    """What the site says the newest saved state is; None before the first."""
    device_id: str
    device_name: str
    username: str
    trust: Trust


@dataclass(frozen=True)
class Joiner:
    """A device at the door of a run."""

    client: PlatformClient
    home: Home
    role: Role = Role.TRAINER
    device_name: str = ""
    hardware: Hardware = field(default_factory=Hardware)

    @property
    def slug(self) -> str:
        return self.client.address.slug or ""

    @property
    def folder(self) -> Path:
        return self.home.run(self.client.address)

    def join(self) -> Admission:
        """Join, or resume as the same device; idempotent.

        Raises:
            ClientError: refused, not reachable, or what came is not to be trusted.
        """
        trust = self.trust_update()
        answer = self._answer()
        config = self._config(answer.config, trust)
        return Admission(
            config=config,
            peer_pass=self.pass_check(answer.peer_pass, trust, lineage=config.body.lineage),
            artifacts=self._artifacts(config.body),
            bootstrap_peers=answer.bootstrap_peers,
            min_epoch=answer.min_epoch,
            checkpoint=_checkpoint(answer.checkpoint, config.body),
            device_id=answer.device_id,
            device_name=answer.device_name,
            username=answer.username,
            trust=trust,
        )

    def _answer(self) -> JoinResponse:
        """Ask to be let in; a challenge that a lost answer has used up is replaced once."""
        path = f"/runs/{self.slug}/join/"
        try:
            return self.client.post(path, self._request(), JoinResponse)
        except ClientError as error:
            if error.code not in (ErrorCode.CHALLENGE_INVALID, ErrorCode.CHALLENGE_EXPIRED):
                raise
        return self.client.post(path, self._request(), JoinResponse)

    def trust_update(self) -> Trust:
        """Fetch the site's keys and return those that are trusted."""
        return trust_update(self.client, self.home.site(self.client.address))

    def config_read(self) -> Signed[RunConfig]:
        """Fetch and check the newest config without joining (it is public)."""
        trust = self.trust_update()
        return self._config(self.client.get(f"/runs/{self.slug}/config/", ConfigOut).jws, trust)

    def pass_check(self, token: str, trust: Trust, *, lineage: int) -> Signed[PeerPass]:
        """Return a pass that is made out for this device in this run."""
        key = self.home.swarm_key()
        expected = {
            "run": self.slug,
            "lineage": lineage,
            "peer_id": key.peer_id,
            "key_thumbprint": key.thumbprint,
            "role": self.role,
        }
        return pass_verify(token, trust=trust, clock=self.client.clock, expected=expected)

    def _request(self) -> JoinRequest:
        challenge = self.client.get(f"/runs/{self.slug}/challenge/", Challenge).challenge
        device, swarm = self.home.device_key(), self.home.swarm_key()
        proof = DeviceProof(
            challenge=challenge,
            run=self.slug,
            peer_id=swarm.peer_id,
            key_thumbprint=swarm.thumbprint,
            jwk=public_jwk(device),
            swarm_signature=swarm.sign(challenge),
        )
        return JoinRequest(
            peer_id=swarm.peer_id,
            swarm_public_key=swarm.public_base64,
            device_proof=sign(
                proof,
                typ=TYP_PROOF,
                key=device,
                issuer=self.client.address.origin,
                lifetime=_PROOF_LIFETIME,
                now=self.client.clock.now(),
            ),
            hardware=self.hardware,
            trainer_version=TRAINER_VERSION,
            role=self.role,
            device_name=self.device_name[:80],
        )

    def _config(self, token: str, trust: Trust) -> Signed[RunConfig]:
        path = self.folder / "config.jws"
        config = config_verify(
            token,
            trust=trust,
            clock=self.client.clock,
            slug=self.slug,
            oldest=_known_version(path),
        )
        file_write(path, token.encode())
        return config

    def _artifacts(self, config: RunConfig) -> Path:
        folder = folder_make(self.folder / "artifacts")
        for artifact in config.artifacts:
            artifact_fetch(self.client, folder, artifact)
        return folder


def _checkpoint(token: str, config: RunConfig) -> CheckpointManifest | None:
    """Return the manifest that came with the answer; None when it is none, or of another lineage.

    It is signed by the coordinator's device, whose key is not known here: the site checked that
    when it took the manifest in, and vouches for it by handing it out. The one that a lineage
    begins with is known by its hash from the signed config.
    """
    if not token:
        return None
    try:
        body = {k: v for k, v in peek_body(token).items() if k in CheckpointManifest.model_fields}
        manifest = CheckpointManifest.model_validate_json(json.dumps(body))
    except (EnvelopeError, ValidationError):
        return None
    start = config.start
    if start is not None and sha256(token.encode()).hexdigest() == start.manifest_sha256:
        return manifest
    is_ours = (manifest.run, manifest.lineage) == (config.run, config.lineage)
    return manifest if is_ours else None


def _known_version(path: Path) -> int:
    """Return the config version on disk, 0 when there is none."""
    try:
        return int(peek_body(path.read_text())["version"])
    except FileNotFoundError:
        return 0
    except (OSError, EnvelopeError, KeyError, ValueError, TypeError) as error:
        raise trust_error(
            "home_unusable", f"{path} is damaged", f"Delete {path} and join again."
        ) from error
