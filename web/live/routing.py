"""Websocket addresses."""

from django.urls import URLPattern, path

from web.live.consumers import run_consumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/runs/<slug:slug>/", run_consumer),  # type: ignore[arg-type]
]
