"""The plain way to fan out, for comparison: a Channels consumer in a group.

``BENCH_LAYER`` is ``core`` or ``pubsub``. Nobody is authorised, nothing is conflated.
"""

import gc
import json
import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.project.settings")

import django
from django.conf import settings

LAYERS = {
    "core": "channels_redis.core.RedisChannelLayer",
    "pubsub": "channels_redis.pubsub.RedisPubSubChannelLayer",
}


def layer_settings(kind: str, url: str) -> dict[str, Any]:
    """Return CHANNEL_LAYERS of one kind; capacity as large as the core layer needs here."""
    config: dict[str, Any] = {"hosts": [{"address": url, "socket_timeout": None}]}
    if kind == "core":
        config["capacity"] = 10_000
    return {"default": {"BACKEND": LAYERS[kind], "CONFIG": config}}


def application_make() -> Any:
    django.setup()
    settings.CHANNEL_LAYERS = layer_settings(os.environ["BENCH_LAYER"], settings.REDIS_URL)
    from channels.generic.websocket import AsyncWebsocketConsumer
    from channels.routing import URLRouter
    from django.urls import path

    class Viewer(AsyncWebsocketConsumer):
        groups = ["demo"]

        async def run_update(self, event: dict[str, Any]) -> None:
            await self.send(text_data=json.dumps(event["body"]))

    return URLRouter([path("ws/runs/<slug:slug>/", Viewer.as_asgi())])


if "BENCH_LAYER" in os.environ:
    application = application_make()

gc.freeze()  # as the site does, so that only the ways to send are compared
gc.set_threshold(50_000, 20, 50)
