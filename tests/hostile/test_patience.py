"""Slow, endless and oversized requests, against the server that `make run` starts."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from training.protocol.errors import ErrorCode, Problem
from web.project import patience
from web.project.patience import BodyBound, PatientProtocol
from web.project.stack.programs import programs

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
END = b"0\r\n\r\n"
LINES = {
    "bytes": b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
    "pieces": b"Transfer-Encoding: chunked\r\n\r\n"
    + (b"3e8\r\n" + b"x" * 1000 + b"\r\n") * 5
    + END,
    "a promise": b"Content-Length: 99999999999\r\n\r\n",
}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(patience, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(patience, "MAX_BYTES_OF_STRANGERS", 2000)
    monkeypatch.setattr(patience, "MAX_BYTES", 10_000)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body, as a view does that reads it."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(length).encode()})


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, *parts: bytes, every: float = 0.0) -> None:
        for part in parts:
            self.writer.write(part)
            await asyncio.sleep(every)

    async def answer(self) -> bytes:
        """Return what comes until the server closes, or for a second."""
        found = b""
        try:
            async with asyncio.timeout(1.0):
                while part := await self.reader.read(65_536):
                    found += part
        except (TimeoutError, ConnectionError):
            pass
        return found


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    """Open a connection to a server of ours."""
    config = Config(BodyBound(echo), log_level="critical", lifespan="off")
    config.load()
    state = ServerState()

    def protocol() -> PatientProtocol:
        return PatientProtocol(config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield Line(reader, writer)
    finally:
        writer.close()
        server.close()
        for task in set(state.tasks):
            task.cancel()


def refusal(answer: bytes) -> Problem:
    head, _, body = answer.partition(b"\r\n\r\n")
    problem = Problem.model_validate_json(body)
    assert head.startswith(f"HTTP/1.1 {problem.status} ".encode())
    assert b"application/problem+json" in head
    return problem


@pytest.mark.parametrize("start", [b"", b"POST / HT", HEAD])
async def test_headers_that_never_end_are_not_waited_for(start: bytes) -> None:
    async with line() as client:
        began = time.monotonic()
        await client.say(start)
        assert await client.answer() == b""
        assert time.monotonic() - began < 0.9


async def test_headers_in_drops_gain_no_time() -> None:
    async with line() as client:
        await client.say(HEAD, *[b"X: y\r\n"] * 8, every=0.06)
        await client.say(b"Content-Length: 0\r\n\r\n")
        assert await client.answer() == b""


async def test_headers_without_end_are_refused_early() -> None:
    async with line() as client:
        await client.say(HEAD + b"X: ", *[b"y" * 40_000] * 3, every=0.02)
        assert b" 400 " in await client.answer()


@pytest.mark.parametrize("kind", LINES)
async def test_a_body_that_is_too_large_is_refused(kind: str) -> None:
    async with line() as client:
        await client.say(HEAD + LINES[kind])
        problem = refusal(await client.answer())
        assert problem.code == ErrorCode.BODY_TOO_LARGE
        assert "2,000 bytes" in problem.detail


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
async def test_whoever_has_a_token_may_send_more(kind: str) -> None:
    async with line() as client:
        await client.say(HEAD + b"Authorization: Bearer x\r\n" + LINES[kind])
        assert (await client.answer()).endswith(b"5000\r\n0\r\n\r\n")


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with line() as client:
        await client.say(HEAD + b"Content-Length: 100\r\n\r\n", *[b"x"] * 3, every=0.05)
        problem = refusal(await client.answer())
        assert (problem.status, problem.code) == (408, ErrorCode.REQUEST_TOO_SLOW)
        assert problem.remedy


async def test_a_second_request_on_a_line_has_its_own_time() -> None:
    async with line() as client:
        for _ in range(3):
            await client.say(HEAD, b"Content-Length: 2\r\n\r\n", b"ab", every=0.05)
            await asyncio.sleep(0.1)
        assert (await client.answer()).count(b"200 OK") == 3


def test_the_site_is_served_with_these_bounds() -> None:
    (web,) = (program for program in programs(None) if program.name == "web")
    assert "web.project.patience:PatientProtocol" in web.command
