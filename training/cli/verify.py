"""``beeyard verify FILE``: what a signed message is, who signed it, and until when it holds."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from joserfc.jwk import OKPKey
from pydantic import BaseModel

from training.cli.arguments import Arguments
from training.cli.output import Output
from training.client.errors import ClientError, ExitCode, trust_error
from training.client.store import Home, home_open
from training.client.trust import sites_known, trust_read
from training.protocol import claims, names
from training.protocol.config import RunConfig
from training.protocol.envelope import (
    EnvelopeError,
    Signed,
    peek_body,
    peek_key_id,
    peek_type,
)
from training.protocol.envelope import (
    verify as envelope_verify,
)
from training.protocol.errors import ErrorCode
from training.protocol.metrics import PeerMetrics, SwarmSnapshot

_KINDS: dict[str, tuple[str, type[BaseModel]]] = {
    names.TYP_CONFIG: ("run config", RunConfig),
    names.TYP_PASS: ("pass", claims.PeerPass),
    names.TYP_RECEIPT: ("receipt", claims.Receipt),
    names.TYP_REVOCATIONS: ("revocation list", claims.Revocations),
    names.TYP_METRICS: ("trainer's report", PeerMetrics),
    names.TYP_SNAPSHOT: ("swarm snapshot", SwarmSnapshot),
    names.TYP_CHECKPOINT: ("checkpoint manifest", claims.CheckpointManifest),
    names.TYP_PROOF: ("device proof", claims.DeviceProof),
    names.TYP_KEY: ("word for a new site key", claims.KeyVouch),
}

_SUMMARY = (
    "run", "version", "lineage", "epoch", "samples", "state", "reason", "user", "sub", "device",
)  # fmt: skip


@dataclass(frozen=True)
class _Signer:
    name: str
    key: OKPKey


def verify(args: Arguments, out: Output) -> int:
    """Check one of our signed messages; exit code 5 when it must not be trusted."""
    token = _read(args.file)
    try:
        kind, model = _KINDS.get(peek_type(token), ("", BaseModel))
        if not kind:
            raise _refused("the file is signed, but is no message of Beeyard")
        signer = _signer_of(token, home_open(args.home))
        signed = _check(token, model, signer)
    except EnvelopeError as error:
        raise trust_error(error.code, error.detail, "Do not use the file.") from error
    is_valid = signed.expires_at > datetime.now(UTC)
    out.result(
        {
            "kind": kind,
            "signer": signer.name,
            "key_id": signed.key_id,
            "issuer": signed.issuer,
            "issued_at": signed.issued_at,
            "expires_at": signed.expires_at,
            "valid": is_valid,
            "body": signed.body.model_dump(mode="json"),
        },
        _lines(kind, signer, signed, is_valid=is_valid),
    )
    return int(ExitCode.FINE if is_valid else ExitCode.BAD_SIGNATURE)


def _lines(kind: str, signer: _Signer, signed: Signed[Any], *, is_valid: bool) -> list[str]:
    verb = "valid until" if is_valid else "EXPIRED at"
    lines = [
        f"A {kind}, signed by {signer.name}.",
        f"Issuer {signed.issuer}, key {signed.key_id}.",
        f"Signed at {signed.issued_at.isoformat()}, {verb} {signed.expires_at.isoformat()}.",
    ]
    known = [(name, getattr(signed.body, name, "")) for name in _SUMMARY]
    facts = [f"{name} {value}" for name, value in known if value != ""]
    return [*lines, f"It says: {', '.join(facts)}."] if facts else lines


def _check(token: str, model: type[BaseModel], signer: _Signer) -> Signed[Any]:
    """Check the signature as of the time of signing: an expired message is still explained."""
    now = datetime.now(UTC)
    try:
        now = min(now, datetime.fromtimestamp(int(peek_body(token)["iat"]), UTC))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _refused("the file does not say when it was signed") from error
    return envelope_verify(
        token,
        typ=peek_type(token),
        model=model,
        keys=[signer.key],
        now=now,
    )


def _signer_of(token: str, home: Home) -> _Signer:
    key_id = peek_key_id(token)
    for address, folder in sites_known(home.root):
        trust = trust_read(folder)
        for key in trust.keys if trust else ():
            if key.thumbprint() == key_id:
                return _Signer(f"the site {address.origin}", key)
        for key in trust.retired if trust else ():
            if key.thumbprint() == key_id:
                return _Signer(f"the site {address.origin} (an earlier key)", key)
    if (home.root / "device.jwk").exists() and home.device_key().thumbprint() == key_id:
        return _Signer("this device", home.device_key())
    raise trust_error(
        ErrorCode.UNKNOWN_KEY,
        f"it is signed with key {key_id[:60]!r}, which is not known here",
        "Keys of a site become known when you join one of its runs from this machine.",
    )


def _read(name: str) -> str:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            "file_unreadable",
            f"{name} cannot be read: {error}",
            "Name a file with a signed message.",
            exit_code=ExitCode.USAGE,
        ) from error
    return text.strip()


def _refused(detail: str) -> ClientError:
    return trust_error(ErrorCode.BAD_SIGNATURE, detail, "Do not use the file.")
