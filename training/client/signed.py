"""Checking what the site signed, and saying plainly what is wrong with it."""

from typing import TypeVar

from pydantic import BaseModel

from training.client.clock import SiteClock
from training.client.errors import ClientError, ExitCode, trust_error
from training.client.trust import Trust
from training.protocol.claims import PeerPass
from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, Signed, verify
from training.protocol.errors import ERRORS, ErrorCode
from training.protocol.names import TRAINER_VERSION, TYP_CONFIG, TYP_PASS
from training.protocol.versions import is_version_at_least

T = TypeVar("T", bound=BaseModel)


def config_verify(
    token: str, *, trust: Trust, clock: SiteClock, slug: str, oldest: int
) -> Signed[RunConfig]:
    """Return the run config that ``token`` carries.

    ``oldest`` is the version this device trained with last: an older one is refused, since an
    old config is still signed.

    Raises:
        ClientError: the signature, the run, the version or our own version do not fit.
    """
    signed = _open(token, "config", typ=TYP_CONFIG, model=RunConfig, trust=trust, clock=clock)
    config = signed.body
    if config.run != slug:
        raise trust_error(
            ErrorCode.BAD_SIGNATURE,
            f"the site sent the config of run {config.run}, not of {slug}",
            "Do not train; tell the organisers of the run.",
        )
    if config.version < oldest:
        raise trust_error(
            "config_rolled_back",
            f"the site sent config version {config.version}, but version {oldest} was known here",
            "Do not train; ask the organisers. An old config may be replayed by somebody.",
        )
    if not is_version_at_least(TRAINER_VERSION, config.min_trainer_version):
        raise ClientError(
            ErrorCode.TRAINER_TOO_OLD,
            f"run {slug} needs beeyard {config.min_trainer_version}, this is {TRAINER_VERSION}",
            ERRORS[ErrorCode.TRAINER_TOO_OLD].remedy,
            exit_code=ExitCode.NOT_ALLOWED,
        )
    return signed


def pass_verify(
    token: str, *, trust: Trust, clock: SiteClock, expected: dict[str, object]
) -> Signed[PeerPass]:
    """Return the pass, whose claims must have the ``expected`` values.

    Raises:
        ClientError: badly signed, expired, or made out to somebody else.
    """
    signed = _open(token, "pass", typ=TYP_PASS, model=PeerPass, trust=trust, clock=clock)
    wrong = [name for name, value in expected.items() if getattr(signed.body, name) != value]
    if wrong:
        raise trust_error(
            ErrorCode.BAD_SIGNATURE,
            f"the site's pass is made out for another {', '.join(wrong)}",
            "Run the command again; tell the organisers if it stays.",
        )
    return signed


def _open(
    token: str, what: str, *, typ: str, model: type[T], trust: Trust, clock: SiteClock
) -> Signed[T]:
    try:
        return verify(token, typ=typ, model=model, keys=trust.keys, now=clock.now())
    except EnvelopeError as error:
        raise trust_error(
            error.code, f"the site's {what} is refused: {error.detail}", _remedy(error, what)
        ) from error


def _remedy(error: EnvelopeError, what: str) -> str:
    if error.code == ErrorCode.UNKNOWN_KEY:
        return (
            "The site signs with a key that no key known here vouches for. Ask the organisers; "
            "if they changed it on purpose, delete keys.json of this site in the beeyard folder."
        )
    if error.code == ErrorCode.ENVELOPE_EXPIRED:
        return f"Check this machine's clock, then ask the organisers for a fresh {what}."
    if error.code == ErrorCode.BODY_INVALID:
        return "Install the newest beeyard: pip install --upgrade beeyard."
    return "Do not train; tell the organisers: somebody may have changed what the site sends."
