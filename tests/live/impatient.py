"""The site's application, with less patience for clients that do not read."""

from web.live import viewer
from web.project.asgi import application

__all__ = ["application"]

viewer.SEND_SECONDS = 1.0
