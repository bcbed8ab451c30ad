"""Request ids, security headers, errors as answers, and the door for banned accounts."""

import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from training.protocol.errors import ErrorCode
from web.core.errors import AppError, outage_of
from web.core.failures import error_response
from web.core.requestid import request_id_begin

logger = logging.getLogger(__name__)
GetResponse = Callable[[HttpRequest], HttpResponse]


def request_id_middleware(get_response: GetResponse) -> GetResponse:
    """Give each request an id; a proxy in front may have given it one already."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "") if settings.BEHIND_PROXY else ""
        value = request_id_begin(given)
        response = get_response(request)
        response["X-Request-Id"] = value
        return response

    return middleware


def content_policy() -> str:
    """Return the Content-Security-Policy: everything from here, nothing inline."""
    public = urlsplit(settings.PUBLIC_URL)
    # Older browsers do not take 'self' for websockets.
    socket = f"{'wss' if public.scheme == 'https' else 'ws'}://{public.netloc}"
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            "manifest-src 'self'",
            f"connect-src 'self' {socket}",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def security_headers_middleware(get_response: GetResponse) -> GetResponse:
    """Tell browsers to run and embed nothing but our own files."""
    headers = {
        "Content-Security-Policy": content_policy(),
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    return middleware


def banned_middleware(get_response: GetResponse) -> GetResponse:
    """End the session of a banned account, and turn errors of services into answers.

    What a person was shown is for nobody else's cache.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if getattr(request.user, "is_banned", False):
            text = getattr(request.user, "ban_text", "")
            logout(request)
            return error_response(request, AppError(ErrorCode.BANNED, text))
        response = get_response(request)
        if request.user.is_authenticated:
            response.headers.setdefault("Cache-Control", "private")
        return response

    def process_exception(request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, AppError):
            return error_response(request, error)
        outage = outage_of(error)
        if outage is None:
            return None
        logger.error("%s %s failed: %s", request.method, escape_uri_path(request.path), error)
        return error_response(request, outage)

    middleware.process_exception = process_exception  # type: ignore[attr-defined]
    return middleware
