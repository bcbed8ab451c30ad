"""The one kind of error that services raise, and its JSON form (RFC 9457)."""

import math
from typing import Any

from django.db import DataError, OperationalError
from django.http import HttpRequest, JsonResponse
from redis.exceptions import RedisError

from training.protocol.errors import ErrorCode

PROBLEM_CONTENT_TYPE = "application/problem+json"


class AppError(Exception):
    """Something that the caller should know: what happened and what to do about it."""

    def __init__(
        self,
        code: ErrorCode,
        detail: str = "",
        *,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        self.code = code
        self.detail = detail or f"{code.info.title}."
        self.retry_after = retry_after
        """Seconds."""
        self.status = status or code.info.status
        super().__init__(f"{code}: {self.detail}")

    @property
    def title(self) -> str:
        return self.code.info.title

    @property
    def remedy(self) -> str:
        return self.code.info.remedy


def problem_body(error: AppError, **members: Any) -> dict[str, Any]:
    """Return the problem document of an error; ``members`` are further members of it."""
    return {
        "type": f"urn:beeyard:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": str(error.code),
        "remedy": error.remedy,
    } | members


def error_headers(error: AppError) -> dict[str, str]:
    """Return the headers that go with an error, whatever its form."""
    headers = {"Cache-Control": "no-store"}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="beeyard"'
    return headers


def problem_response(error: AppError, **members: Any) -> JsonResponse:
    """Return the answer that a program gets for an error."""
    response = JsonResponse(
        problem_body(error, **members), status=error.status, content_type=PROBLEM_CONTENT_TYPE
    )
    for name, value in error_headers(error).items():
        response[name] = value
    return response


def is_for_programs(request: HttpRequest) -> bool:
    """Whether errors of this request are answered as JSON rather than as a page."""
    return request.path_info.startswith(("/api/", "/identity/o/api/"))


def outage_of(error: Exception) -> AppError | None:
    """Return what callers are told when the database or Redis is away or cannot hold a value.

    None: it is neither.
    """
    if isinstance(error, DataError):
        return AppError(ErrorCode.BODY_INVALID, "A value is outside what the site can keep.")
    if isinstance(error, OperationalError | RedisError):
        detail = f"The {'database' if isinstance(error, OperationalError) else 'cache'} is away."
        return AppError(ErrorCode.SERVICE_UNAVAILABLE, detail, retry_after=5)
    return None
