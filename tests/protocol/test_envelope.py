"""Signed messages: what is accepted, and every way in which one is refused."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import OctKey, OKPKey

from training.protocol.claims import PeerPass
from training.protocol.envelope import EnvelopeError, peek_body, peek_key_id, sign, verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate, key_load, public_jwk
from training.protocol.names import TYP_CONFIG, TYP_PASS
from training.protocol.states import Role

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
SITE = key_generate()
BODY = PeerPass(
    sub="bob",
    device="d1",
    run="python-docs",
    lineage=1,
    peer_id="QmBob",
    key_thumbprint="0" * 64,
    role=Role.TRAINER,
)


def pass_sign(**changes: Any) -> str:
    options: dict[str, Any] = {
        "typ": TYP_PASS,
        "key": SITE,
        "issuer": "https://bees.example",
        "lifetime": HOUR,
        "now": NOW,
    }
    return sign(BODY, **(options | changes))


def refusal(token: str, **changes: Any) -> ErrorCode:
    options: dict[str, Any] = {"typ": TYP_PASS, "model": PeerPass, "keys": [SITE], "now": NOW}
    with pytest.raises(EnvelopeError) as caught:
        verify(token, **(options | changes))
    assert caught.value.detail
    return caught.value.code


def with_header(header: dict[str, str], key: Any = SITE, payload: bytes | None = None) -> str:
    body = payload or json.dumps(peek_body(pass_sign())).encode()
    parts = [json.dumps(header).encode(), body]
    signing_input = ".".join(base64.urlsafe_b64encode(p).rstrip(b"=").decode() for p in parts)
    if isinstance(key, OKPKey):
        signature = key.private_key.sign(signing_input.encode())  # type: ignore[union-attr]
    else:
        signature = b"\0" * 64
    return f"{signing_input}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_a_signed_message_comes_back_with_its_claims() -> None:
    token = pass_sign()

    signed = verify(
        token, typ=TYP_PASS, model=PeerPass, keys=[key_generate(), SITE], now=NOW + HOUR / 2
    )

    assert signed.body == BODY
    assert (signed.issuer, signed.issued_at, signed.expires_at) == (
        "https://bees.example",
        NOW,
        NOW + HOUR,
    )
    assert signed.token == token
    assert signed.key_id == peek_key_id(token) == SITE.thumbprint()
    assert jws.extract_compact(token.encode()).headers() == {
        "alg": "Ed25519",
        "kid": SITE.thumbprint(),
        "typ": "beeyard-pass+jws",
    }


def test_the_public_half_of_the_key_is_enough_to_verify() -> None:
    public = key_load(public_jwk(SITE))
    assert not public.is_private
    assert verify(pass_sign(), typ=TYP_PASS, model=PeerPass, keys=[public], now=NOW).body == BODY


def test_a_message_of_another_type_is_refused() -> None:
    assert refusal(pass_sign(typ=TYP_CONFIG)) is ErrorCode.BAD_SIGNATURE


def test_a_message_of_an_unknown_key_is_refused() -> None:
    assert refusal(pass_sign(key=key_generate())) is ErrorCode.UNKNOWN_KEY


def test_a_stolen_key_id_does_not_help() -> None:
    header = {"alg": "Ed25519", "kid": SITE.thumbprint(), "typ": TYP_PASS}
    assert refusal(with_header(header, key=key_generate())) is ErrorCode.BAD_SIGNATURE


@pytest.mark.parametrize("alg", ["EdDSA", "none", "HS256", "ES256", ""])
def test_no_other_algorithm_is_accepted_even_with_a_good_signature(alg: str) -> None:
    header = {"alg": alg, "kid": SITE.thumbprint(), "typ": TYP_PASS}
    assert refusal(with_header(header)) is ErrorCode.BAD_SIGNATURE


def test_the_public_key_cannot_be_used_as_a_shared_secret() -> None:
    secret = OctKey.import_key(json.dumps(public_jwk(SITE)))
    header = {"alg": "HS256", "kid": SITE.thumbprint(), "typ": TYP_PASS}
    token = jws.serialize_compact(header, b"{}", secret, algorithms=["HS256"])
    assert refusal(token) is ErrorCode.BAD_SIGNATURE


def test_a_message_expires_at_its_last_second() -> None:
    assert refusal(pass_sign(), now=NOW + HOUR) is ErrorCode.ENVELOPE_EXPIRED


def test_a_message_from_the_future_is_refused_beyond_the_clock_leeway() -> None:
    verify(
        pass_sign(now=NOW + timedelta(seconds=59)),
        typ=TYP_PASS,
        model=PeerPass,
        keys=[SITE],
        now=NOW,
    )
    assert refusal(pass_sign(now=NOW + timedelta(seconds=62))) is ErrorCode.ENVELOPE_EXPIRED


@pytest.mark.parametrize(
    "payload",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"iss":"x","iat":1,"exp":"soon","jti":"x"}',
        b'{"iss":"x","iat":1,"exp":1e400,"jti":"x"}',
        b'{"iss":"x","iat":1,"exp":99999999999,"jti":"x","sub":"bob"}',
    ],
)
def test_a_well_signed_body_that_does_not_fit_is_refused(payload: bytes) -> None:
    header = {"alg": "Ed25519", "kid": SITE.thumbprint(), "typ": TYP_PASS}
    assert refusal(with_header(header, payload=payload)) is ErrorCode.BODY_INVALID


def test_a_field_that_the_model_does_not_know_is_refused() -> None:
    body = peek_body(pass_sign()) | {"admin": True}
    header = {"alg": "Ed25519", "kid": SITE.thumbprint(), "typ": TYP_PASS}
    token = with_header(header, payload=json.dumps(body).encode())
    assert refusal(token) is ErrorCode.BODY_INVALID


@pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c", "é.é.é", "e30.e30.", "\0" * 9])
def test_garbage_is_refused_with_a_sentence(token: str) -> None:
    assert refusal(token) is ErrorCode.BAD_SIGNATURE
    with pytest.raises(EnvelopeError):
        peek_body(token)


@given(position=st.integers(min_value=0), character=st.sampled_from("ABCxyz019-_."))
def test_no_single_changed_character_goes_unnoticed(position: int, character: str) -> None:
    token = TOKEN
    position %= len(token)
    changed = token[:position] + character + token[position + 1 :]
    try:
        signed = verify(changed, typ=TYP_PASS, model=PeerPass, keys=[SITE], now=NOW)
    except EnvelopeError:
        return
    # The last character of a base64 text carries unused bits: the signed bytes are the same.
    assert signed.body == BODY


TOKEN = pass_sign()
