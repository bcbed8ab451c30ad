"""The rule of the gate: who may be in a swarm (pure; values and the time in, a verdict out)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from joserfc.jwk import OKPKey

from training.protocol.admission import Verdict
from training.protocol.claims import PeerPass, Revocations
from training.protocol.config import RunConfig
from training.protocol.envelope import (
    CLOCK_LEEWAY,
    EnvelopeError,
    Signed,
    peek_body,
    verify,
)
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_PASS, TYP_REVOCATIONS

_STALE_BEATS = 3


@dataclass(frozen=True)
class GateRules:
    """What a run's config says about passes."""

    run: str
    lineage: int
    grace: timedelta
    """How long after its end a pass is still good for a peer that is known or cannot renew it."""
    stale: timedelta
    """A verifier that has not heard of the site for this long takes it for unreachable."""

    @classmethod
    def of(cls, config: RunConfig) -> "GateRules":
        return cls(
            config.run,
            config.lineage,
            timedelta(seconds=config.swarm.pass_grace_seconds),
            timedelta(seconds=_STALE_BEATS * config.report.heartbeat_seconds),
        )


@dataclass(frozen=True)
class GateView:
    """What one peer knows when it judges others."""

    keys: tuple[OKPKey, ...] = ()
    """The site's keys that it trusts."""
    own_pass: str = ""
    """JWS that it shows to others."""
    revoked: frozenset[str] = frozenset()
    """Peer ids."""
    revocations_seq: int = 0
    contact_at: datetime | None = None
    """When it last heard of the site, by the site's time."""

    @cached_property
    def key_ids(self) -> frozenset[str]:
        """Thumbprints of the keys."""
        return frozenset(key.thumbprint() for key in self.keys)


def pass_open(token: str, keys: Iterable[OKPKey]) -> Signed[PeerPass]:
    """Return a pass whose signature is right, whether or not it has expired.

    Raises:
        EnvelopeError: not a pass, or signed by nobody known.
    """
    return verify(token, typ=TYP_PASS, model=PeerPass, keys=keys, now=_dated(token))


def revocations_open(token: str, keys: Iterable[OKPKey], *, run: str) -> Signed[Revocations]:
    """Return the list in a JWS. It does not lapse: only a list with a larger number replaces it.

    Raises:
        EnvelopeError: not a list of this run, or signed by nobody known.
    """
    signed = verify(token, typ=TYP_REVOCATIONS, model=Revocations, keys=keys, now=_dated(token))
    if signed.body.run != run:
        raise EnvelopeError(ErrorCode.BODY_INVALID, f"revocations of run {signed.body.run}")
    return signed


def verdict_of(
    peer_id: str,
    token: str,
    *,
    rules: GateRules,
    view: GateView,
    now: datetime,
    is_known: bool,
    open_pass: Callable[[str], Signed[PeerPass]],
) -> Verdict:
    """Judge a peer by the pass that it shows.

    Args:
        peer_id: what the connection or a signature proves.
        is_known: this verifier admitted the peer while its pass was valid.
        open_pass: :func:`pass_open` with the view's keys, or what remembers its answers.
    """
    if peer_id in view.revoked:
        return Verdict.PEER_REVOKED
    if not token:
        return Verdict.PASS_NONE
    try:
        signed = open_pass(token)
    except EnvelopeError as error:
        is_unknown = error.code == ErrorCode.UNKNOWN_KEY
        return Verdict.PASS_UNKNOWN_KEY if is_unknown else Verdict.PASS_BAD_SIGNATURE
    return _verdict_of_pass(peer_id, signed, rules=rules, view=view, now=now, is_known=is_known)


def _verdict_of_pass(
    peer_id: str,
    signed: Signed[PeerPass],
    *,
    rules: GateRules,
    view: GateView,
    now: datetime,
    is_known: bool,
) -> Verdict:
    """Judge a peer by a pass whose signature was checked.

    An expired pass is good for ``rules.grace`` more if this verifier knows the peer from when the
    pass was valid, or if the verifier itself has lost the site: then nobody can renew anything.
    """
    body = signed.body
    if peer_id in view.revoked:
        return Verdict.PEER_REVOKED
    if body.run != rules.run:
        return Verdict.PASS_WRONG_RUN
    if body.lineage != rules.lineage:
        return Verdict.PASS_WRONG_LINEAGE
    if body.peer_id != peer_id:
        return Verdict.PASS_WRONG_PEER
    if signed.issued_at > now + CLOCK_LEEWAY:
        return Verdict.CLOCK_OFF
    if now < signed.expires_at:
        return Verdict.ADMITTED
    is_alone = view.contact_at is None or now - view.contact_at > rules.stale
    if now < signed.expires_at + rules.grace and (is_known or is_alone):
        return Verdict.ADMITTED
    return Verdict.PASS_EXPIRED


def _dated(token: str) -> datetime:
    """Return when a message says it was issued: its signature is checked as of then."""
    try:
        return datetime.fromtimestamp(int(peek_body(token)["iat"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise EnvelopeError(ErrorCode.BAD_SIGNATURE, "a signed message without a date") from error
