"""Which pages may open a socket here."""

from typing import Any
from urllib.parse import ParseResult, urlparse

from channels.security.websocket import OriginValidator, WebsocketDenier
from django.conf import settings
from django.http import parse_cookie


class BrowserOriginValidator(OriginValidator):
    """Pages of this site only. A program sends no Origin, and has no visitor's cookies to abuse."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Refuse an origin that is no address at all, which the validator cannot read."""
        if all(_is_address(value) for name, value in scope["headers"] if name == b"origin"):
            headers = [header for header in scope["headers"] if not _is_bad_cookie(header)]
            return await super().__call__({**scope, "headers": headers}, receive, send)
        return await WebsocketDenier()(scope, receive, send)

    def valid_origin(self, parsed_origin: ParseResult | None) -> bool:
        return parsed_origin is None or bool(super().valid_origin(parsed_origin))


def _is_address(origin: bytes) -> bool:
    try:
        return (urlparse(origin.decode("latin-1")).port or 0) >= 0
    except ValueError:  # such as a bracket without its twin, or a port beyond all ports
        return False


def _is_bad_cookie(header: tuple[bytes, bytes]) -> bool:
    """Whether a header holds a cookie with a NUL, which PostgreSQL cannot look up."""
    name, value = header
    return name == b"cookie" and "\0" in "".join(parse_cookie(value.decode("latin-1")).values())


def own_pages_only(application: Any) -> BrowserOriginValidator:
    """Return the ASGI application, closed to pages of other sites."""
    return BrowserOriginValidator(application, settings.ALLOWED_HOSTS)
