"""Websocket addresses."""

from typing import Any

from channels.routing import URLRouter
from django.urls import URLPattern, path, re_path

from web.live.consumers import nowhere_consumer, run_consumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/runs/<slug:slug>/", run_consumer),  # type: ignore[arg-type]
    re_path("", nowhere_consumer),  # type: ignore[arg-type]
]


def websocket_router() -> Any:
    """Return the ASGI application of all websocket addresses."""
    return URLRouter(websocket_urlpatterns)
