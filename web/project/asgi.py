"""The application that uvicorn serves: pages and API over HTTP, live data over websockets."""

import gc
import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.project.settings")
http_application = get_asgi_application()  # before anything that needs models

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter  # noqa: E402

from web.live.origin import own_pages_only  # noqa: E402
from web.live.routing import websocket_router  # noqa: E402
from web.project.patience import BodyBound  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyBound(http_application),
        "websocket": own_pages_only(AuthMiddlewareStack(websocket_router())),
    }
)

# With thousands of viewers a full collection stops everything for 0.3 s. A tick of the live page
# makes and drops some thousand objects: by Python's own numbers that is enough to begin one.
gc.freeze()  # what is loaded by now stays
gc.set_threshold(50_000, 20, 50)
