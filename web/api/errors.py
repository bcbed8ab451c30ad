"""Every refusal of the API is a problem document (RFC 9457), whoever makes it."""

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from training.protocol.errors import ErrorCode
from web.core.errors import (
    PROBLEM_CONTENT_TYPE,
    AppError,
    outage_of,
    problem_response,
)

logger = logging.getLogger(__name__)
_MAX_FIELDS = 20

_BY_STATUS = {
    400: ErrorCode.BODY_INVALID,
    401: ErrorCode.NOT_AUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.BODY_TOO_LARGE,
    422: ErrorCode.BODY_INVALID,
    429: ErrorCode.TOO_MANY_REQUESTS,
    503: ErrorCode.SERVICE_UNAVAILABLE,
}


def error_handlers_add(api: NinjaAPI) -> None:
    """Translate the exceptions that endpoints may raise."""
    api.add_exception_handler(AppError, _app_error)
    api.add_exception_handler(ValidationError, _validation_error)
    api.add_exception_handler(HttpError, _http_error)
    api.add_exception_handler(Http404, _simple(ErrorCode.NOT_FOUND))
    api.add_exception_handler(PermissionDenied, _simple(ErrorCode.FORBIDDEN))
    api.add_exception_handler(RequestDataTooBig, _simple(ErrorCode.BODY_TOO_LARGE))
    api.add_exception_handler(Exception, _unexpected)


def problem_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Turn refusals that Django or ninja wrote themselves (404, 405, 400) into problems."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        # Refusals of the login endpoints are OAuth's own (RFC 6749), not problems.
        if response.status_code < 400 or not request.path_info.startswith("/api/"):
            return response
        if response.get("Content-Type", "").startswith(PROBLEM_CONTENT_TYPE):
            return response
        code = _BY_STATUS.get(response.status_code, ErrorCode.INTERNAL_ERROR)
        problem = problem_response(AppError(code, status=response.status_code))
        if "Allow" in response.headers:
            problem["Allow"] = response["Allow"]
        return problem

    return middleware


def _app_error(request: HttpRequest, error: Any) -> HttpResponse:
    return problem_response(error)


def _simple(code: ErrorCode) -> Callable[[HttpRequest, Any], HttpResponse]:
    def handler(request: HttpRequest, error: Any) -> HttpResponse:
        return problem_response(AppError(code))

    return handler


def _validation_error(request: HttpRequest, error: Any) -> HttpResponse:
    fields = [
        {"path": _path_text(item["loc"]), "message": str(item["msg"])}
        for item in error.errors[:_MAX_FIELDS]
    ]
    detail = "; ".join(f"{field['path']}: {field['message']}" for field in fields[:3])
    return problem_response(AppError(ErrorCode.BODY_INVALID, detail), errors=fields)


def _path_text(location: tuple[Any, ...]) -> str:
    # ninja puts the name of the view's argument between "body" and the field.
    kind, *rest = (str(part) for part in location)
    return ".".join([kind, *(rest[1:] if kind == "body" and len(rest) > 1 else rest)])


def _http_error(request: HttpRequest, error: Any) -> HttpResponse:
    if error.status_code == 400:  # a body that is not JSON
        return problem_response(AppError(ErrorCode.BODY_INVALID, str(error)))
    code = _BY_STATUS.get(error.status_code, ErrorCode.INTERNAL_ERROR)
    wait = getattr(error, "wait", None)
    return problem_response(AppError(code, retry_after=wait, status=error.status_code))


def _unexpected(request: HttpRequest, error: Any) -> HttpResponse:
    outage = outage_of(error)
    if outage:
        logger.error("%s %s failed: %s", request.method, escape_uri_path(request.path), error)
        return problem_response(outage)
    logger.error("%s %s failed", request.method, escape_uri_path(request.path), exc_info=error)
    return problem_response(AppError(ErrorCode.INTERNAL_ERROR))
