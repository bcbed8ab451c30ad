"""Which keys of a site are trusted: pinned at first contact, later only by vouching."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from joserfc.jwk import OKPKey
from pydantic import JsonValue

from training.client.address import SiteAddress, site_address_parse
from training.client.errors import UNEXPECTED, PlatformError
from training.client.files import file_broken, json_read, json_write
from training.client.http import PlatformClient
from training.protocol.base import TolerantModel
from training.protocol.claims import KeyVouch
from training.protocol.envelope import EnvelopeError, verify
from training.protocol.keys import key_load, public_jwk
from training.protocol.names import TYP_KEY

VOUCHED_BY = "vouched_by"


class KeySet(TolerantModel):
    """The body of ``keys/``: JWKs, each perhaps with a member ``vouched_by``."""

    keys: tuple[dict[str, JsonValue], ...]


@dataclass(frozen=True)
class Trust:
    """The site keys that this device trusts."""

    keys: tuple[OKPKey, ...]
    """Keys the site publishes now."""
    retired: tuple[OKPKey, ...] = ()
    """Keys it published before: they still explain old files, but sign nothing new."""
    is_first: bool = False
    """Whether they were pinned just now, without anything to compare them with."""


def trust_update(client: PlatformClient, folder: Path) -> Trust:
    """Fetch the site's keys, accept vouched ones, write them down and return what is trusted.

    Raises:
        PlatformError: the site's answer holds no usable key.
        ClientError: the pinned keys cannot be read.
    """
    published = _keys_of(client.get("/keys/", KeySet), client)
    pinned = trust_read(folder)
    if pinned is None:
        trust = Trust(tuple(key for key, _ in published), is_first=True)
    else:
        trust = trust_extend(pinned, published, now=client.clock.now())
    _write(folder, trust, client.address.origin)
    return trust


def trust_extend(pinned: Trust, published: Iterable[tuple[OKPKey, str]], *, now: datetime) -> Trust:
    """Return the trust after the site published ``(key, vouched_by)`` pairs (pure).

    A key is added when a trusted key vouches for it, through any number of steps. A pinned key
    that is no longer published is retired. When nothing published is trusted, the pins stay, so
    that a hijacked site cannot make a device forget them.
    """
    known = {key.thumbprint(): key for key in (*pinned.keys, *pinned.retired)}
    roots = {key.thumbprint(): key for key in pinned.keys}
    offered = {key.thumbprint(): (key, vouch) for key, vouch in published}
    accepted = {name: key for name, (key, _) in offered.items() if name in roots}
    grew = True
    while grew:
        grew = False
        for name, (key, vouch) in offered.items():
            if name not in accepted and _is_vouched(key, vouch, {**roots, **accepted}, now):
                accepted[name], grew = key, True
    if not accepted:
        return pinned
    retired = tuple(key for name, key in known.items() if name not in accepted)
    return Trust(tuple(accepted.values()), retired)


def trust_read(folder: Path) -> Trust | None:
    """Return what was pinned for a site, None before first contact."""
    path = folder / "keys.json"
    data = json_read(path)
    if data is None:
        return None
    try:
        keys = tuple(key_load(jwk) for jwk in data["keys"])
        retired = tuple(key_load(jwk) for jwk in data.get("retired", ()))
    except (ValueError, KeyError, TypeError) as error:
        raise file_broken(path, str(error)) from error
    if not keys:
        raise file_broken(path, "no keys in it")
    return Trust(keys, retired)


def sites_known(root: Path) -> list[tuple[SiteAddress, Path]]:
    """Return the sites whose keys were ever pinned in this home, with their folders."""
    found = []
    for path in sorted(root.glob("sites/*/keys.json")):
        origin = (json_read(path) or {}).get("origin")
        if isinstance(origin, str):
            found.append((site_address_parse(origin), path.parent))
    return found


def _is_vouched(key: OKPKey, vouch: str, trusted: dict[str, OKPKey], now: datetime) -> bool:
    try:
        signed = verify(vouch, typ=TYP_KEY, model=KeyVouch, keys=trusted.values(), now=now)
        return key_load(dict(signed.body.jwk)).thumbprint() == key.thumbprint()
    except (EnvelopeError, ValueError):
        return False


def _keys_of(answer: KeySet, client: PlatformClient) -> list[tuple[OKPKey, str]]:
    pairs = []
    for jwk in answer.keys:
        try:
            key = key_load(jwk)
        except (ValueError, TypeError):
            continue  # a kind of key that a later version knows
        if not key.is_private:
            pairs.append((key, str(jwk.get(VOUCHED_BY, ""))))
    if not pairs:
        raise PlatformError(
            UNEXPECTED,
            f"{client.address.origin} published no usable keys",
            "Check the address; tell the organisers if it is right.",
            status=200,
        )
    return pairs


def _write(folder: Path, trust: Trust, origin: str) -> None:
    value = {
        "origin": origin,
        "keys": [public_jwk(key) for key in trust.keys],
        "retired": [public_jwk(key) for key in trust.retired],
    }
    json_write(folder / "keys.json", value)
