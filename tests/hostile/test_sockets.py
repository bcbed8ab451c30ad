"""Handshakes and frames that no page of ours would send."""

import pytest
from asgiref.testing import ApplicationCommunicator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.bytes_of_strangers import DEEP
from tests.live.sockets import handshake
from web.live.consumers import _is_ping, _since
from web.live.frames import message_parse
from web.project.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)
COOKIE = (b"cookie", b'sessionid="\\000aaaaaaaaaaaa"')


async def close_code(path: str, *headers: tuple[bytes, bytes]) -> int:
    communicator, is_open = await handshake(path, list(headers))
    if not is_open:
        return 403
    event = await communicator.receive_output(3.0)
    await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
    await communicator.wait(3.0)
    return int(event["code"])


@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/nowhere/", "/ws/runs/\ufffd/", "/ws/runs/a/b/"])
async def test_an_address_where_no_run_can_be_is_closed_as_unknown(path: str) -> None:
    assert await close_code(path) == 4404


@pytest.mark.parametrize(
    "origin",
    [b"http://[", b"http://localhost:99999999", b"http://localhost:x", b"null", b"\xff\xfe",
     b"https://evil.example", b"//localhost.evil.example", b""],
)  # fmt: skip
async def test_a_page_of_nowhere_opens_no_socket(origin: bytes) -> None:
    assert await close_code("/ws/runs/demo/", (b"origin", origin)) == 403


async def test_a_cookie_with_a_nul_is_no_session() -> None:
    assert await close_code("/ws/runs/demo/", COOKIE) == 4404


@given(st.text() | st.sampled_from([DEEP.decode(), '{"type": "ping", "type": "pong"}', "NaN"]))
def test_only_a_ping_is_a_ping(text: str) -> None:
    assert not _is_ping(text)


@given(st.binary(max_size=60))
def test_any_place_in_the_sequence_is_a_number_or_none(query: bytes) -> None:
    for text in (query, b"since=" + query):
        since = _since({"query_string": text})
        assert since is None or 0 <= since < 10**19


@given(st.text() | st.sampled_from(["{}", "null", '{"type":"run.patch","seq":"1"}']))
def test_a_message_that_is_none_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        message_parse(text)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text(max_size=30), query=st.binary(max_size=30))
async def test_any_handshake_is_answered(path: str, query: bytes) -> None:
    scope = {"type": "websocket", "path": f"/{path}", "query_string": query, "headers": [],
             "client": None, "subprotocols": []}  # fmt: skip
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "websocket.connect"})
    await communicator.receive_output(3.0)
    assert (await communicator.receive_output(3.0))["code"] == 4404
    await communicator.wait(3.0)
