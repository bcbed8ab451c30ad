"""Requests with a NUL character in a value are refused at the door.

No honest name, code or cookie has one, and PostgreSQL keeps no text with one: deeper inside, each
lookup would have to expect an error of the database.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.core.failures import error_response

_FORM = "application/x-www-form-urlencoded"


def plain_text_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Refuse a NUL in the path, the query or a form; forget cookies that have one."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.COOKIES = {
            name: value for name, value in request.COOKIES.items() if "\0" not in value
        }
        if "\0" in request.path_info:
            return error_response(request, AppError(ErrorCode.NOT_FOUND))
        if _has_nul(request.META.get("QUERY_STRING", "").encode()) or _form_has_nul(request):
            detail = "The request has a NUL character in it."
            return error_response(request, AppError(ErrorCode.BODY_INVALID, detail))
        return get_response(request)

    return middleware


def _form_has_nul(request: HttpRequest) -> bool:
    return request.content_type == _FORM and _has_nul(request.body)


def _has_nul(encoded: bytes) -> bool:
    return b"%00" in encoded or b"\0" in encoded
