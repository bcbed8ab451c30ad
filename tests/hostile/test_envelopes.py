"""Whatever bytes stand where a signed message should: a refusal with a sentence, never a trace."""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.bytes_of_strangers import DEEP, json_values
from training.protocol.api import JoinRequest, PassRequest
from training.protocol.claims import CheckpointManifest, DeviceProof, PeerPass, Revocations
from training.protocol.config import RunConfig
from training.protocol.envelope import (
    EnvelopeError,
    peek_body,
    peek_key_id,
    peek_type,
    sign,
    verify,
)
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate, key_load, public_jwk
from training.protocol.metrics import PeerMetrics, SwarmSnapshot
from training.protocol.names import TYP_PASS

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = key_generate()
MODELS = (PeerPass, PeerMetrics, SwarmSnapshot, CheckpointManifest, RunConfig, Revocations)
TIMES = st.sampled_from([-1, 0, 1e18, -1e18, 2**31, 2**63 - 1, 67_768_036_191_676_800, "9" * 5000])
CLAIMS = st.fixed_dictionaries(
    {"iss": json_values, "iat": json_values | TIMES, "exp": json_values | TIMES, "jti": json_values}
)


def jws_of(header: bytes, payload: bytes) -> str:
    """Return a message whose signature is right whatever it says."""
    parts = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, payload))
    signature = KEY.private_key.sign(parts)  # type: ignore[union-attr]
    return f"{parts.decode()}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def header_of(**members: Any) -> bytes:
    header = {"alg": "Ed25519", "kid": KEY.thumbprint(), "typ": TYP_PASS} | members
    return json.dumps(header).encode()


def refused(token: str, model: Any = PeerPass) -> EnvelopeError | None:
    """Read a message in every way that the code has; return how it was refused."""
    refusals = [
        refusal_of(lambda: peek_body(token)),
        refusal_of(lambda: peek_key_id(token)),
        refusal_of(lambda: peek_type(token)),
        refusal_of(lambda: verify(token, typ=TYP_PASS, model=model, keys=[KEY], now=NOW)),
    ]
    for error in refusals:
        assert error is None or (error.detail and error.code.info.remedy)
    return refusals[-1]


def refusal_of(read: Callable[[], object]) -> EnvelopeError | None:
    try:
        read()
    except EnvelopeError as error:
        return error
    return None


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_text_that_is_no_message_is_refused(token: str) -> None:
    error = refused(token)
    assert error is not None
    assert error.code is ErrorCode.BAD_SIGNATURE


@given(header=json_values, extra=st.dictionaries(st.text(max_size=8), json_values, max_size=3))
def test_any_header_is_refused_or_ignored(header: Any, extra: dict[str, Any]) -> None:
    for text in (json.dumps(header).encode(), header_of(**extra)):
        assert refused(jws_of(text, b"{}")) is not None


BAD_HEADERS = {
    "crit that is a number": header_of(crit=5),
    "crit of lists": header_of(crit=[[1]]),
    "unencoded payload": header_of(crit=["b64"], b64=False),
    "kid that is a list": header_of(kid=["x"]),
    "typ that is an object": header_of(typ={}),
    "endless nesting": b'{"alg":' + DEEP,
    "deep nesting": b'{"alg":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "not UTF-8": b"\xff\xfe",
    "a list": b'["alg"]',
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_header_made_to_break_the_reader_is_refused(name: str) -> None:
    assert refused(jws_of(BAD_HEADERS[name], b"{}")) is not None


@given(model=st.sampled_from(MODELS), claims=CLAIMS, body=st.dictionaries(st.text(), json_values))
def test_any_signed_body_is_refused_by_name(
    model: Any, claims: dict[str, Any], body: dict[str, Any]
) -> None:
    error = refused(jws_of(header_of(), json.dumps(body | claims).encode()), model)
    assert error is not None
    assert error.code in (ErrorCode.BODY_INVALID, ErrorCode.ENVELOPE_EXPIRED)


BAD_PAYLOADS = {
    "endless nesting": b"[" * 200_000,
    "deep nesting": b'{"a":' + b"[" * 5000 + b"]" * 5000 + b',"iss":1,"iat":1,"exp":9e9,"jti":1}',
    "before all time": b'{"iss":1,"iat":-1e18,"exp":9999999999,"jti":1}',
    "after all time": b'{"iss":1,"iat":1,"exp":9223372036854775807,"jti":1}',
    "not a number": b'{"iss":1,"iat":NaN,"exp":Infinity,"jti":1}',
    "not UTF-8": b"\xff",
}


@pytest.mark.parametrize("name", BAD_PAYLOADS)
def test_a_body_made_to_break_the_reader_is_refused(name: str) -> None:
    error = refused(jws_of(header_of(), BAD_PAYLOADS[name]))
    assert error is not None
    assert error.code is ErrorCode.BODY_INVALID


def test_a_name_with_a_nul_is_refused_though_it_is_signed() -> None:
    body = PeerPass(
        sub="bob\0", device="d", run="demo", lineage=1, peer_id="p", key_thumbprint="0" * 64,
        role="trainer",
    )  # fmt: skip
    token = sign(body, typ=TYP_PASS, key=KEY, issuer="x", lifetime=timedelta(hours=1), now=NOW)
    error = refused(token)
    assert error is not None
    assert error.code is ErrorCode.BODY_INVALID


@given(
    json_values
    | st.fixed_dictionaries({"kty": st.just("OKP"), "crv": json_values, "x": json_values})
)
def test_anything_that_is_no_key_is_a_value_error(jwk: Any) -> None:
    for form in (jwk, json.dumps(jwk)):
        with pytest.raises(ValueError):
            public_jwk(key_load(form))


def test_a_nested_key_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        key_load(DEEP.decode())


@pytest.mark.parametrize("model", [*MODELS, DeviceProof, JoinRequest, PassRequest])
def test_no_number_is_without_bounds(model: Any) -> None:
    """A number beyond every column of a database would stop all that stands beside it."""
    numbers = numbers_of(model.model_json_schema())
    assert [name for name, kind in numbers if not BOUNDS & kind.keys()] == []


BOUNDS = {"maximum", "exclusiveMaximum", "const", "enum"}


def numbers_of(schema: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield name, schema
        for key, part in schema.items():
            yield from numbers_of(part, f"{name}.{key}")
    elif isinstance(schema, list):
        for part in schema:
            yield from numbers_of(part, name)
