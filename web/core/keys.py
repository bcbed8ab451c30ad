"""Custody of the site's private key: the only place that reads it.

``keys/site.jwk`` holds the current private JWK with two further members: ``vouched_by``, the
previous key's word for this one, and ``previous``, the public keys that were current before.
"""

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from joserfc.jwk import OKPKey
from pydantic import BaseModel

from training.protocol.claims import KeyVouch
from training.protocol.envelope import peek_key_id, sign
from training.protocol.keys import key_generate, key_load, public_jwk
from training.protocol.names import TYP_KEY
from web.core.secretfiles import secret_file_keep, secret_file_write

VOUCHED_BY = "vouched_by"
_PREVIOUS = "previous"
VOUCH_LIFETIME = timedelta(days=3650)
"""A device that was away longer has to pin the keys anew."""


def site_key() -> OKPKey:
    """Return the key that the site signs with now; made on first use."""
    return _keys()[0]


def site_keys_public() -> list[OKPKey]:
    """Return the public halves of the current key and of those before it, newest first."""
    return [key_load({k: v for k, v in jwk.items() if k != VOUCHED_BY}) for jwk in jwks()["keys"]]


def site_sign(body: BaseModel, typ: str, lifetime: timedelta) -> str:
    """Return ``body`` as a JWS of the site, valid from now on."""
    now = datetime.now(UTC)
    return sign(
        body, typ=typ, key=site_key(), issuer=settings.PUBLIC_URL, lifetime=lifetime, now=now
    )


def jwks() -> dict[str, list[dict[str, str]]]:
    """Return the JWK set that clients pin."""
    key, extra = _keys()
    return {"keys": [public_jwk(key) | _vouch_member(extra), *extra.get(_PREVIOUS, ())]}


def site_key_rotate() -> OKPKey:
    """Make a new key, vouched for by the current one, and sign with it from now on."""
    old, extra = _keys()
    new = key_generate()
    vouch = site_sign(KeyVouch(jwk=public_jwk(new)), TYP_KEY, VOUCH_LIFETIME)
    retired = public_jwk(old) | _vouch_member(extra)
    body = new.as_dict(private=True) | {
        VOUCHED_BY: vouch,
        _PREVIOUS: [retired, *extra.get(_PREVIOUS, ())],
    }
    secret_file_write(_path(), json.dumps(body))
    return new


def site_key_distrust(kid: str, *, start_over: bool = False) -> OKPKey:
    """Publish a leaked key no longer, drop every word that it gave for others; return the current.

    With ``start_over`` the key may be the current one: a new key is made that nothing vouches
    for, since whoever has the old one could vouch for keys of their own.

    Raises:
        ValueError: not a key of this site, or the current one without ``start_over``.
    """
    current, extra = _keys()
    previous: list[dict[str, str]] = extra.get(_PREVIOUS, [])
    is_current = current.thumbprint() == kid
    if not is_current and kid not in {jwk["kid"] for jwk in previous}:
        raise ValueError(f"{kid} is no key of this site.")
    if is_current and not start_over:
        raise ValueError(f"{kid} is the key that the site signs with now: rotate it first.")
    kept = [_unvouched(jwk, kid) for jwk in previous if jwk["kid"] != kid]
    key, vouch = current, extra.get(VOUCHED_BY, "")
    if is_current:
        key, vouch = key_generate(), ""
    elif vouch and peek_key_id(vouch) == kid:
        vouch = ""
    body = key.as_dict(private=True) | {VOUCHED_BY: vouch, _PREVIOUS: kept}
    secret_file_write(_path(), json.dumps(body))
    return key


def _unvouched(jwk: dict[str, str], kid: str) -> dict[str, str]:
    """Return a retired key without the word of the key ``kid``, if it has that."""
    if VOUCHED_BY in jwk and peek_key_id(jwk[VOUCHED_BY]) == kid:
        return {name: value for name, value in jwk.items() if name != VOUCHED_BY}
    return jwk


def _path() -> Path:
    return Path(settings.KEYS_DIR) / "site.jwk"


def _vouch_member(extra: dict[str, Any]) -> dict[str, str]:
    return {VOUCHED_BY: extra[VOUCHED_BY]} if extra.get(VOUCHED_BY) else {}


def _keys() -> tuple[OKPKey, dict[str, Any]]:
    path = _path()
    secret_file_keep(path, lambda: json.dumps(key_generate().as_dict(private=True)))
    # Another process may have rotated the key: a new file has a new time.
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, changed_ns: int) -> tuple[OKPKey, dict[str, Any]]:
    data = json.loads(path.read_text())
    extra = {name: data.pop(name) for name in (VOUCHED_BY, _PREVIOUS) if name in data}
    return key_load(data), extra
