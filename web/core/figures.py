"""What this process counts about itself, for Prometheus. Bounded: labels come from the code."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PROCESS = CollectorRegistry()
REQUEST_SECONDS = Histogram(
    "beeyard_request_seconds",
    "Seconds until a page or call was answered",
    ["method", "view", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=PROCESS,
)
VIEWERS = Gauge(
    "beeyard_websocket_viewers", "Open websockets of live pages in this process", registry=PROCESS
)
SOCKET_ENDINGS = Counter(
    "beeyard_websocket_endings",
    "Websockets that ended in this process, by why; cut: the client did not even take the goodbye",
    ["reason"],
    registry=PROCESS,
)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
GetResponse = Callable[[HttpRequest], HttpResponse]


def request_seconds_middleware(get_response: GetResponse) -> GetResponse:
    """Count how long answers take, by view and kind of answer; never by address or person."""

    def middleware(request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = get_response(request)
        match = request.resolver_match
        REQUEST_SECONDS.labels(
            method=request.method if request.method in _METHODS else "other",
            view=match.view_name if match else "none",
            status=f"{response.status_code // 100}xx",
        ).observe(time.perf_counter() - began)
        return response

    return middleware
