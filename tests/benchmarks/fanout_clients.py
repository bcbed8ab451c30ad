"""Viewers for the fan-out benchmark, in a process of their own: count frames, measure their age.

``python fanout_clients.py PORT PATH VIEWERS STALLED``: connects, prints ``ready``, and after a
line on stdin prints what arrived since as JSON. Frames carry ``"t":<time>`` of their making.
"""

import asyncio
import json
import re
import sys
import time

import uvloop

TIME = re.compile(rb'"t":\s?([0-9.]+)')
HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
)
AT_ONCE = 50
ages: list[float] = []


class Viewer(asyncio.Protocol):
    """As little websocket as a fair measurement needs."""

    def __init__(self, hello: bytes, stalls: bool) -> None:
        self.hello, self.stalls = hello, stalls
        self.buffer = b""
        self.is_open = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self.hello)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.is_open.done():
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head:
                raise SystemExit(head.decode())
            self.is_open.set_result(None)
            self.buffer = rest
            if self.stalls:
                self.transport.pause_reading()  # type: ignore[attr-defined]
        while self._frame():
            pass

    def _frame(self) -> bool:
        buffer = self.buffer
        if len(buffer) < 2:
            return False
        length, start = buffer[1], 2
        if length == 126:
            length, start = int.from_bytes(buffer[2:4], "big"), 4
        elif length == 127:
            length, start = int.from_bytes(buffer[2:10], "big"), 10
        if len(buffer) < start + length:
            return False
        payload, self.buffer = buffer[start : start + length], buffer[start + length :]
        opcode = buffer[0] & 15
        if opcode == 9:  # a pong, masked with zeros
            pong = bytes((0x8A, 0x80 | length, 0, 0, 0, 0)) + payload
            self.transport.write(pong)  # type: ignore[attr-defined]
        elif opcode == 1 and (made := TIME.search(payload)):
            ages.append(time.time() - float(made[1]))
        return True


async def main(port: int, path: str, viewers: int, stalled: int) -> None:
    loop = asyncio.get_running_loop()
    hello = HANDSHAKE.format(path=path, port=port).encode()
    limit = asyncio.Semaphore(AT_ONCE)

    async def connect(number: int) -> Viewer:
        async with limit:
            _, viewer = await loop.create_connection(
                lambda: Viewer(hello, number < stalled), "127.0.0.1", port
            )
            await viewer.is_open
            return viewer

    connected = await asyncio.gather(*(connect(number) for number in range(viewers)))
    await asyncio.sleep(2)
    ages.clear()
    print("ready", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(1)
    ordered = sorted(ages)
    result = {
        "frames": len(ordered),
        "p50": ordered[len(ordered) // 2] if ordered else None,
        "p95": ordered[int(len(ordered) * 0.95)] if ordered else None,
        "lost": sum(viewer.transport.is_closing() for viewer in connected),
    }
    print(json.dumps(result), flush=True)  # noqa: T201


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
