"""Keys and the identities that are derived from them."""

import base64
import json

import pytest
from joserfc.jwk import OKPKey

from training.protocol.keys import (
    key_dump,
    key_generate,
    key_load,
    key_thumbprint,
    peer_id_of,
    public_jwk,
)

# A throw-away 2048-bit RSA public key; its peer id was computed by libp2p's daemon.
RSA_PUBLIC = base64.b64decode(
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAye6aY090wGegMfJOZb+wyW7mEf2iWctA6Ge7"
    "tFKvgL3KmzhgTJLjK2gUvxAwDInpskj6e/Wjnx0Jz8xleiTBNx9wrzHQjpVP6417LCIH7CxaHUkyA5gZ"
    "QWWZtP16FQVfXq8Nt8O5h8U7Ie7TMH9sAudFcaGvGLFU/7SevT2fJgW8t8ypaxdSGTN7I2wZaDRjVr5m"
    "FCxg+ruHFculvqY47Ejcz9E0rqCcp9xfN2VZZaGMHTyudF+0HcNaLdD1sG6wFotmaKHEYifVJlM5q/48"
    "nVdXpXYWKOOJQ7FZGNFDTod0CsbGuARTqrE0iE+YzSn4LUl/jpkHyzX6kN+6Cg/vtQIDAQAB"
)
PEER_ID = "QmQXVJHM6sqNA8VZt7Cknm4tp3UpfpsxhQdM5rhzYiwqh6"


def test_no_key_has_a_name_that_a_command_would_read_as_an_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_dashed(key: OKPKey) -> bool:
        return key.thumbprint().startswith("-")

    keys = [OKPKey.generate_key("Ed25519") for _ in range(2000)]
    drawn = iter(sorted(keys, key=is_dashed, reverse=True))
    monkeypatch.setattr(OKPKey, "generate_key", lambda _curve: next(drawn))
    assert is_dashed(next(drawn)), "one in 64 does"
    assert not is_dashed(key_generate())


def test_a_key_survives_a_round_trip_through_its_file() -> None:
    key = key_generate()
    assert key_load(key_dump(key)).thumbprint() == key.thumbprint()


def test_the_public_jwk_holds_no_private_part() -> None:
    jwk = public_jwk(key_generate())
    assert set(jwk) == {"kty", "crv", "x", "kid", "alg", "use"}


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"kty":"oct","k":"AAAA"}',
        json.dumps({"kty": "OKP", "crv": "X25519", "x": "A" * 43}),
    ],
)
def test_what_is_not_an_ed25519_key_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="Ed25519"):
        key_load(data)


def test_the_peer_id_is_the_one_that_libp2p_derives() -> None:
    assert peer_id_of(RSA_PUBLIC) == PEER_ID


def test_the_thumbprint_is_the_sha256_of_the_public_key() -> None:
    assert len(key_thumbprint(RSA_PUBLIC)) == 64
    assert key_thumbprint(RSA_PUBLIC) != key_thumbprint(RSA_PUBLIC + b"\0")
