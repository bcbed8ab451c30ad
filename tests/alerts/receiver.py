"""A stand-in for somebody's server that takes webhooks, well behaved or not."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """``mode``: ok, error, redirect, slow (drips headers), closing, endless (body)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = "ok"
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.is_over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *args: Any) -> None: ...

    def do_GET(self) -> None:
        self.server.received.append(("GET", dict(self.headers), b""))
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        getattr(self, f"_{self.server.mode}")()

    def _ok(self) -> None:
        self.send_response(204)
        self.end_headers()

    def _error(self) -> None:
        self.send_response(500)
        self.end_headers()

    def _redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def _closing(self) -> None:
        self.connection.close()

    def _slow(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for i in range(200):
            if self.server.is_over.wait(0.05):
                return
            try:
                self.wfile.write(f"X-{i}: y\r\n".encode())
            except OSError:
                return

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        began = time.monotonic()
        while time.monotonic() - began < 10:
            try:
                self.wfile.write(b"x" * 65536)
            except OSError:
                return


@contextmanager
def receiver_run() -> Iterator[Receiver]:
    """Yield a receiver on this machine."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()
