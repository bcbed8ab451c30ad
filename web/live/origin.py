"""Which pages may open a socket here."""

from typing import Any
from urllib.parse import ParseResult

from channels.security.websocket import OriginValidator
from django.conf import settings


class BrowserOriginValidator(OriginValidator):
    """Pages of this site only. A program sends no Origin, and has no visitor's cookies to abuse."""

    def valid_origin(self, parsed_origin: ParseResult | None) -> bool:
        return parsed_origin is None or bool(super().valid_origin(parsed_origin))


def own_pages_only(application: Any) -> BrowserOriginValidator:
    """Return the ASGI application, closed to pages of other sites."""
    return BrowserOriginValidator(application, settings.ALLOWED_HOSTS)
